/** The permissions of the controller's own account, and which of them are missing. Pure. */
import { LEASE_NAME } from "../../api/installation.ts";
import type { Resource } from "../../apimachinery/objects.ts";
import {
  ADMISSION_POLICIES,
  ADMISSION_POLICY_BINDINGS,
  BINDING_COMPOSITIONS,
  LEASES,
  NAMESPACES,
  PODS,
  SECRET_BINDINGS,
  SECRET_GRANTS,
  SECRETS,
  SERVICE_ACCOUNTS,
  VAULT_CONNECTIONS,
} from "../../apimachinery/resources.ts";
import { resourceText } from "../../kube/grant-commands.ts";
import { MARK_RIGHT } from "../../kube/request-mark.ts";
import type { InstallationProblem } from "../../observability/installation-problems.ts";
import { DIGEST_KEY_NAME } from "../../rollout/digest/keys.ts";
import { ALL_POLICIES, policiesOf } from "./policies.ts";

type Kind = Pick<Resource, "group" | "version" | "plural">;

/** One permission. */
export interface Right extends Kind {
  verb: string;
  /** Undefined for any name. */
  name: string | undefined;
  /** `own`: in the controller's namespace. Otherwise in all namespaces, or in the one that Inlay is installed for. */
  where: "own" | undefined;
}

interface Rule {
  kind: Kind;
  verbs: readonly string[];
  names?: readonly string[];
  where?: "own";
  /** Only in an installation for the cluster: a Role can't grant it. */
  isForCluster?: true;
}

const statusOf = ({ group, version, plural }: Kind): Kind => ({ group, version, plural: `${plural}/status` });
const kind = (group: string, plural: string): Kind => ({ group, version: "v1", plural });

/** deploy/manifests/10-controller-role.yaml and deploy/namespaced/10-controller-role.yaml. A test compares them. */
const RULES: readonly Rule[] = [
  { kind: SECRET_BINDINGS, verbs: ["list", "watch", "patch"] },
  { kind: statusOf(SECRET_BINDINGS), verbs: ["update"] },
  { kind: BINDING_COMPOSITIONS, verbs: ["list", "watch", "patch"], isForCluster: true },
  { kind: statusOf(BINDING_COMPOSITIONS), verbs: ["update"], isForCluster: true },
  { kind: VAULT_CONNECTIONS, verbs: ["list", "watch"] },
  { kind: statusOf(VAULT_CONNECTIONS), verbs: ["update"] },
  { kind: SECRET_GRANTS, verbs: ["get", "list", "watch"] },
  { kind: SERVICE_ACCOUNTS, verbs: ["impersonate", "get", "list", "watch"], names: ["inlay"] },
  { kind: NAMESPACES, verbs: ["get"] },
  { kind: NAMESPACES, verbs: ["list", "watch"], isForCluster: true },
  { kind: kind("apiextensions.k8s.io", "customresourcedefinitions"), verbs: ["get"], isForCluster: true },
  { kind: ADMISSION_POLICIES, verbs: ["get"], names: ALL_POLICIES, isForCluster: true },
  { kind: ADMISSION_POLICY_BINDINGS, verbs: ["get"], names: ALL_POLICIES, isForCluster: true },
  { kind: kind("events.k8s.io", "events"), verbs: ["create"] },
  { kind: kind("authentication.k8s.io", "tokenreviews"), verbs: ["create"], isForCluster: true },
  { kind: kind("authorization.k8s.io", "subjectaccessreviews"), verbs: ["create"], isForCluster: true },
  { kind: MARK_RIGHT, verbs: [MARK_RIGHT.verb], isForCluster: true },
  { kind: LEASES, verbs: ["create"], where: "own" },
  { kind: LEASES, verbs: ["get", "update"], names: [LEASE_NAME], where: "own" },
  { kind: SECRETS, verbs: ["get", "patch"], names: [DIGEST_KEY_NAME], where: "own" },
  { kind: PODS, verbs: ["list", "watch", "patch"], where: "own" },
];

/** What the controller needs. `scope`: the one namespace that Inlay is installed for. */
export const rightsFor = (scope: string | undefined): Right[] =>
  RULES.filter(({ isForCluster }) => scope === undefined || !isForCluster).flatMap(
    ({ kind: { group, version, plural }, verbs, names = [undefined], where }) =>
      verbs.flatMap((verb) => names.map((name): Right => ({ verb, group, version, plural, name, where }))),
  );

/** What the check of the policies reads. In an installation for one namespace, it is optional. */
export const policyRightsFor = (scope: string | undefined): Right[] =>
  [ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS].flatMap(({ group, version, plural }) =>
    policiesOf(scope).map((name): Right => ({ verb: "get", group, version, plural, name, where: undefined })),
  );

/** `command` grants all permissions of the controller. */
export function missingRights(missing: readonly Right[], command: string): InstallationProblem | undefined {
  if (missing.length === 0) return undefined;
  const byWhat = Map.groupBy(missing, resourceText);
  const parts = [...byWhat].map(([what, rights]) => {
    const verbs = [...new Set(rights.map(({ verb }) => verb))].join(", ");
    const names = [...new Set(rights.flatMap(({ name }) => name ?? []))];
    return `${verbs} ${what}${names.length === 1 ? ` ${names[0]}` : ""}`;
  });
  return {
    message:
      `the controller's own account lacks permissions (${parts.join("; ")}), and docs/reference/permissions.md says what does not work ` +
      `without them; in a clone of this version of Inlay, run: ${command}`,
    parts,
  };
}
