/** Converts Kyverno's policies about Secrets and ConfigMaps, which clone, protect them or restart workloads, to bindings. Pure. */
import { listAt } from "../apimachinery/fields.ts";
import { isObject } from "../apimachinery/json.ts";
import { addGenerated, addProtected } from "./kyverno-cel.ts";
import { addMutated } from "./kyverno-cel-mutate.ts";
import { addClone } from "./kyverno-clone.ts";
import { Drafts } from "./kyverno-draft.ts";
import { addFields, type Results } from "./kyverno-fields.ts";
import { KEEP_RULE, matchesOf, SAME_NAMESPACE } from "./kyverno-match.ts";
import { addProtection } from "./kyverno-protect.ts";
import { addRestart, isRestart } from "./kyverno-restart.ts";
import { type Input, metadataOf, partOf, type Tool } from "./migration.ts";
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
  isClusterScoped: (apiVersion, kind) =>
    apiVersion.startsWith("policies.kyverno.io/") && !kind.startsWith("Namespaced"),
  convert(inputs, output, known) {
    const drafts = new Drafts(exceptedBy(inputs));
    const results = { drafts, output, known };
    const steps = inputs.flatMap((input) => stepsOf(input, results));
    // Restarts need to know the copies.
    for (const type of TYPES) for (const step of steps) if (step.type === type) step.convert();
    drafts.write(output);
  },
};

/** The names of the policies to which the PolicyExceptions make exceptions, for both groups of Kyverno. */
function exceptedBy(inputs: readonly Input[]): Set<string> {
  const exceptions = inputs.filter(({ kind }) => kind === "PolicyException").map(({ root }) => root.peek());
  const references = exceptions
    .flatMap((each) => [...listAt(each, "spec", "exceptions"), ...listAt(each, "spec", "policyRefs")])
    .filter(isObject);
  return new Set(
    references.flatMap(({ policyName, name }) =>
      [policyName, name].map((each) => String(each).split("/").at(-1) ?? ""),
    ),
  );
}

const TYPES = ["generate", "validate", "mutate"] as const;

/** The conversion of a rule, or of a policy with CEL. */
interface Step {
  readonly type: (typeof TYPES)[number];
  convert(): void;
}

const OF_CEL: Readonly<Record<string, readonly [Step["type"], (input: Input, results: Results) => void]>> = {
  GeneratingPolicy: ["generate", addGenerated],
  ValidatingPolicy: ["validate", addProtected],
  MutatingPolicy: ["mutate", addMutated],
};

function stepsOf(input: Input, results: Results): Step[] {
  if (input.apiVersion.startsWith("policies.kyverno.io/")) {
    const name = input.kind.replace(/^Namespaced/, "");
    const [type, convert] = (Object.hasOwn(OF_CEL, name) ? OF_CEL[name] : undefined) ?? [];
    if (type !== undefined && convert !== undefined) return [{ type, convert: () => convert(input, results) }];
    input.root.refuse(`Inlay has nothing for a ${input.kind}; keep Kyverno for it`);
    return [];
  }
  return rulesOf(input).flatMap((rule): Step[] => {
    const type = TYPES.find((each) => rule.field(each).exists);
    if (type === undefined) {
      rule.refuse(KEEP_RULE);
      return [];
    }
    rule.ignore("skipBackgroundRequests");
    const of = partOf(input, rule);
    if (input.kind === "Policy") checkNamespace(input, rule, results);
    return [{ type, convert: () => OF_RULES[type](of, rule, results) }];
  });
}

const OF_RULES: Readonly<Record<Step["type"], (input: Input, rule: Tracked, results: Results) => void>> = {
  generate: addClone,
  validate: addProtection,
  mutate: (input, rule, results) => (isRestart(rule) ? addRestart : addFields)(input, rule, results),
};

/** Reports what Kyverno refuses, or never matches, in a policy of a namespace. Such a rule selects nothing. */
function checkNamespace({ namespace }: Input, rule: Tracked, { known }: Results): void {
  const isOther = (field: Tracked) =>
    field.exists && field.peek() !== namespace && !SAME_NAMESPACE.test(String(field.peek()));
  for (const { block, kinds: matched } of matchesOf(rule.field("match"))) {
    const resources = block.field("resources");
    const cluster = matched.filter((kind) => /^[A-Z]\w*$/.test(kind) && !known.kinds.resourceOf("v1", kind).namespaced);
    if (cluster.length > 0)
      resources.field("kinds").lose(`a Policy of a namespace does not match ${cluster.join(", ")}; ${AS_CLUSTER}`);
    if (resources.field("namespaces").list().some(isOther))
      resources.field("namespaces").lose(`a Policy matches in its own namespace only; ${AS_CLUSTER}`);
  }
  const generate = rule.field("generate");
  const places = [
    generate.field("namespace"),
    generate.field("clone", "namespace"),
    generate.field("cloneList", "namespace"),
    ...rule
      .field("mutate", "targets")
      .list()
      .map((each) => each.field("namespace")),
  ];
  for (const place of places)
    if (isOther(place)) place.lose(`a Policy reads and writes in its own namespace only; ${AS_CLUSTER}`);
}

const AS_CLUSTER = "Kyverno would refuse it. If you mean a ClusterPolicy, change the kind, and convert again";

function rulesOf(input: Input): Tracked[] {
  const { root, kind, apiVersion } = input;
  if (!apiVersion.startsWith("kyverno.io/") || !["ClusterPolicy", "Policy"].includes(kind)) {
    root.refuse(`Inlay has nothing for a ${kind}; keep Kyverno for it`);
    return [];
  }
  metadataOf(input, () => true);
  const spec = root.field("spec");
  spec.ignore(...IRRELEVANT);
  spec.field("webhookConfiguration").ignore("failurePolicy", "timeoutSeconds");
  // Other fields, such as applyRules: One, can restrict all rules.
  if (spec.field("applyRules").peek() === "All") spec.field("applyRules").ignore();
  return spec.field("rules").list();
}
