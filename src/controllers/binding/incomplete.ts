/** Finds the missing parts of the installation on which a binding depends: the policies that protect, and the digest key. Pure. */
import type { SecretBinding, StoredBinding } from "../../api/binding.ts";
import type { Verdict } from "../../api/verdict.ts";
import type { InstallationCheck, InstallationProblems } from "../../observability/installation-problems.ts";
import { PROTECTING } from "../installation/policies.ts";

type Spec = Pick<SecretBinding | StoredBinding, "spec">;

const protects = ({ spec }: Spec) => spec.sources.some(({ protect }) => protect !== undefined);

/** Whether the result of a check may change the condition of the binding. */
export function dependsOn(binding: Spec, check: InstallationCheck): boolean {
  if (check === "policies") return protects(binding);
  return check === "digest_key" && binding.spec.rollout !== undefined;
}

/** The verdict of the condition InstallationComplete. Undefined if nothing is missing, so that most bindings have no such condition. */
export function incompleteFor(binding: Spec, { all }: Pick<InstallationProblems, "all">): Verdict | undefined {
  const missing = all.get("policies")?.parts.filter((name) => PROTECTING.includes(name)) ?? [];
  if (protects(binding) && missing.length > 0) {
    const message =
      `sources with protect may be unprotected, because these admission policies are not in force: ${missing.join(", ")}; ` +
      "ask a cluster admin to apply the policies of Inlay again; the log of the controller has the command";
    return { ready: "False", reason: "PolicyMissing", message };
  }
  const key = binding.spec.rollout === undefined ? undefined : all.get("digest_key");
  return key && { ready: "False", reason: "NoDigestKey", message: key.message };
}
