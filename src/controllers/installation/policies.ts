/** Judges the admission policies of the installation: they exist, deny what they should, and are not older than the controller. Pure. */
import { VERSION_LABEL } from "../../api/installation.ts";
import type { KubeObject } from "../../apimachinery/objects.ts";
import { compareVersions } from "../../apimachinery/versions.ts";
import type { InstallationProblem } from "../../observability/installation-problems.ts";

/** The policies of deploy/policies. Each is bound by a ValidatingAdmissionPolicyBinding of the same name. */
const POLICIES = [
  "inlay-binding-authors",
  "inlay-connection-authors",
  "inlay-grant-authors",
  "inlay-protect",
  "inlay-protect-accounts",
  "inlay-protecting-bindings",
  "inlay-protect-together",
  "inlay-replicas",
  "inlay-account-tokens",
] as const;
/** BindingCompositions are cluster-scoped, and an installation for one namespace ignores them. */
const COMPOSITION_POLICY = "inlay-composition-authors";
export const ALL_POLICIES: readonly string[] = [...POLICIES, COMPOSITION_POLICY];

/** The policies on which `protect` of a source depends. */
export const PROTECTING: readonly string[] = POLICIES.filter((name) => name.startsWith("inlay-protect"));

export const policiesOf = (scope: string | undefined): readonly string[] =>
  scope === undefined ? ALL_POLICIES : POLICIES;

/** A policy and its binding; undefined if they don't exist. */
export interface SeenPolicy {
  name: string;
  policy: KubeObject | undefined;
  binding: KubeObject | undefined;
}

/** `version` is that of the controller. `command` installs the policies of that version. */
export function judgePolicies(
  seen: readonly SeenPolicy[],
  version: string,
  command: string,
): InstallationProblem | undefined {
  const wrong = seen.flatMap((each) => {
    const what = wrongWith(each, version);
    return what === undefined ? [] : [{ name: each.name, what }];
  });
  if (wrong.length === 0) return undefined;
  const list = [...Map.groupBy(wrong, ({ what }) => what)].map(
    ([what, all]) => `${what}: ${all.map(({ name }) => name).join(", ")}`,
  );
  return {
    message:
      `admission policies are not in force, so users may gain permissions of other accounts (${list.join("; ")}); ` +
      `run helm upgrade, apply your kustomization again or, in a clone of Inlay ${version}, run: ${command}`,
    parts: wrong.map(({ name }) => name),
  };
}

function wrongWith({ name, policy, binding }: SeenPolicy, version: string): string | undefined {
  if (policy === undefined) return "missing";
  if (binding === undefined || specOf(binding)["policyName"] !== name)
    return "without a ValidatingAdmissionPolicyBinding";
  const { validationActions } = specOf(binding);
  if (!Array.isArray(validationActions) || !validationActions.includes("Deny")) return "bound without Deny";
  const [oldest = ""] = [policy, binding]
    .map(({ metadata }) => metadata.labels?.[VERSION_LABEL] ?? "")
    .sort(compareVersions);
  if (oldest === "") return `without the label ${VERSION_LABEL}`;
  return compareVersions(oldest, version) < 0 ? `of the older version ${oldest}` : undefined;
}

const specOf = (object: KubeObject) => (object["spec"] ?? {}) as Record<string, unknown>;
