/** Converts Kyverno's policies about Secrets and ConfigMaps, which clone, protect them or restart workloads, to bindings. Pure. */
import { Grants } from "./grants.ts";
import { addClone } from "./kyverno-clone.ts";
import { Drafts } from "./kyverno-draft.ts";
import { addFields } from "./kyverno-fields.ts";
import { KEEP_RULE } from "./kyverno-match.ts";
import { addProtection } from "./kyverno-protect.ts";
import { addRestart, isRestart } from "./kyverno-restart.ts";
import { type Input, metadataOf, type Tool } from "./migration.ts";
import type { Tracked } from "./tracked.ts";

/** How Kyverno evaluates and reports. */
const IRRELEVANT = [
  "admission background emitWarning failurePolicy mutateExistingOnPolicyUpdate schemaValidation",
  "useServerSideApply webhookTimeoutSeconds",
].flatMap((line) => line.split(" "));

export const KYVERNO: Tool = {
  title: "Kyverno",
  objects: "Kyverno policies",
  owns: ({ apiVersion }) => /^(?:[a-z]+\.)?kyverno\.io\//.test(String(apiVersion)),
  convert(inputs, output, all) {
    const [drafts, grants] = [new Drafts(), new Grants()];
    const rules = inputs.flatMap((input) => rulesOf(input).map((rule) => ({ input, rule })));
    // Restarts need to know the copies.
    const inOrder = ["generate", "validate", "mutate"].flatMap((type) =>
      rules.filter(({ rule }) => rule.field(type).exists).map((each) => ({ ...each, type })),
    );
    for (const { input, rule, type } of inOrder) {
      rule.field("skipBackgroundRequests").ignore();
      if (type === "generate") addClone(input, rule, drafts, output);
      else if (type === "validate") addProtection(input, rule, drafts);
      else if (isRestart(rule)) addRestart(input, rule, drafts);
      else addFields(input, rule, { drafts, grants, output, all });
    }
    for (const { rule } of rules)
      if (!["generate", "validate", "mutate"].some((type) => rule.field(type).exists)) rule.refuse(KEEP_RULE);
    drafts.write(output);
    grants.write(output);
  },
};

function rulesOf(input: Input): Tracked[] {
  const { root, kind, apiVersion } = input;
  if (!apiVersion.startsWith("kyverno.io/") || !["ClusterPolicy", "Policy"].includes(kind)) {
    root.refuse(
      apiVersion.startsWith("policies.kyverno.io/")
        ? "Inlay can't read the CEL expressions of this policy; write a SecretBinding for the Secret that it copies, or keep Kyverno for it"
        : `Inlay has nothing for a ${kind}; keep Kyverno for it`,
    );
    return [];
  }
  metadataOf(input, () => true);
  const spec = root.field("spec");
  for (const field of IRRELEVANT) spec.field(field).ignore();
  for (const field of ["failurePolicy", "timeoutSeconds"]) spec.field("webhookConfiguration", field).ignore();
  // What restricts all rules.
  for (const field of [spec.field("webhookConfiguration", "matchConditions"), spec.field("applyRules")]) {
    if (!field.exists || field.peek() === "All") field.ignore();
    else {
      field.lose("Inlay has no such condition; keep Kyverno for this policy, or remove the condition");
      spec.ignore();
      return [];
    }
  }
  return spec.field("rules").list();
}
