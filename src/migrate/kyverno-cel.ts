/** Converts Kyverno's policies with CEL that clone or protect Secrets and ConfigMaps to bindings. Pure. */
import { isGlob } from "../apimachinery/glob.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { argumentsOf, type Cel, partsOf, pathOf, textOf } from "./cel-syntax.ts";
import type { DataObject } from "./known-objects.ts";
import {
  type Comparison,
  celOf,
  conditionsIn,
  conditionsOf,
  constraintsOf,
  dataKindOf,
  identityOf,
  isOfNamespaces,
  kindOfPlural,
  namespaceConditions,
  negationOf,
  variablesOf,
} from "./kyverno-cel-match.ts";
import { type CopySettings, copy, copyAll } from "./kyverno-clone.ts";
import { messageIn, protect } from "./kyverno-draft.ts";
import type { Results } from "./kyverno-fields.ts";
import { isExact, KEEP_RULE, LEFT_OUT, namespaceSelector } from "./kyverno-match.ts";
import { writerOf } from "./kyverno-protect.ts";
import { type Input, metadataOf } from "./migration.ts";
import type { Tracked } from "./tracked.ts";

/** How Kyverno evaluates and reports. */
const IRRELEVANT = ["failurePolicy", "autogen", "reinvocationPolicy", "auditAnnotations"];

/** The spec of a policy, after what needs nothing. */
export function specOf(input: Input): Tracked {
  metadataOf(input, () => true);
  const spec = input.root.field("spec");
  spec.ignore(...IRRELEVANT);
  spec.field("webhookConfiguration", "timeoutSeconds").ignore();
  const evaluation = spec.field("evaluation");
  evaluation.field("background", "enabled").ignore();
  if ((evaluation.field("admission", "enabled").flag() ?? true) === false)
    evaluation.field("admission").lose("Inlay reacts to each change, and this policy does not; keep Kyverno for it");
  evaluation.field("mode").oneOf(["Kubernetes"], "the policy is not about objects of the cluster; keep Kyverno for it");
  return spec;
}

export function addGenerated(input: Input, results: Results): void {
  const spec = specOf(input);
  const constraints = constraintsOf(spec.field("matchConstraints"));
  if (!isOfNamespaces(constraints) || input.namespace !== "") {
    input.root.refuse(KEEP_RULE);
    return;
  }
  if (!["CREATE", "*"].some((each) => constraints.operations.includes(each)))
    constraints.place.lose("Inlay copies when a namespace appears, and this policy does not; keep Kyverno for it");
  const variables = variablesOf(spec);
  const { names, exceptNames, expressions } = namespaceConditions(
    conditionsOf(spec.field("matchConditions"), variables),
  );
  if (names !== undefined && constraints.names.length > 0)
    constraints.place.lose("names in resourceNames and in a condition must match together; write names by hand");
  const { namespaceSelector: ofNamespace = {}, objectSelector: ofObject = {} } = constraints;
  if (Object.keys(ofNamespace).length > 0 && Object.keys(ofObject).length > 0)
    constraints.place
      .field("objectSelector")
      .lose("selects the same Namespaces as namespaceSelector; write one of them");
  const flag = (name: string) => spec.field("evaluation", name, "enabled").flag() === true;
  spec.field("evaluation", "orphanDownstreamOnPolicyDelete", "enabled").ignore();
  // Kyverno keeps the copies if the policy is deleted.
  const settings: CopySettings = {
    isExisting: flag("generateExisting"),
    isKept: flag("synchronize"),
    isOrphaned: true,
  };
  const sources = spec
    .field("generate")
    .list()
    .flatMap((each) => {
      const cel = celOf(each.field("expression"), variables);
      const read = cel === undefined ? undefined : sourcesOf(cel);
      if (read === undefined)
        each.lose("Inlay copies by generator.Apply into the matched namespace, from resource.Get or resource.List");
      return read ?? [];
    });
  const isWhole = results.drafts.isUnderstood(input, spec);
  for (const { kind, namespace, name } of sources) {
    const except = [...constraints.exceptNames, ...exceptNames, namespace];
    const selector = namespaceSelector(
      names ?? constraints.names,
      { ...ofNamespace, ...ofObject },
      { names: except, expressions },
    );
    const selectors = isWhole ? [selector] : [];
    if (name === undefined)
      copyAll(input, input.name, { kind, namespace, selector: undefined }, selectors, settings, results);
    else copy(input, { kind, namespace, name }, name, selectors, settings, results);
  }
}

interface Source extends Omit<DataObject, "name"> {
  /** Undefined for all of the namespace. */
  readonly name: string | undefined;
}

/** The objects that `generator.Apply(object.metadata.name, [resource.Get("v1", "secrets", "default", "regcred")])` copies. */
function sourcesOf(cel: Cel): Source[] | undefined {
  const [namespace, list, ...more] = argumentsOf(cel, "generator", "Apply") ?? [];
  if (namespace === undefined || list === undefined || more.length > 0) return undefined;
  const isOfTrigger = ["object.metadata.name", "request.name"].includes(pathOf(namespace)?.join(".") ?? "");
  const items = list.kind === "list" ? list.items : [list];
  const sources = items.map((each) => dataOf(each));
  return isOfTrigger && !sources.includes(undefined) ? (sources as Source[]) : undefined;
}

/** The Secret or ConfigMap, or all of a namespace, that an expression reads. */
export function dataOf(cel: Cel): Source | undefined {
  const [get, list] = ["Get", "List"].map((method) => argumentsOf(cel, "resource", method));
  const [version, plural, namespace, name, ...more] = (get ?? list ?? []).map(textOf);
  const kind = kindOfPlural(plural);
  if (version !== "v1" || kind === undefined || namespace === undefined || more.length > 0) return undefined;
  if (!isExact(namespace) || (get === undefined ? list?.length !== 3 : name === undefined || !isExact(name)))
    return undefined;
  return { kind, namespace, name };
}

export function addProtected(input: Input, { drafts }: Results): void {
  const spec = specOf(input);
  const constraints = constraintsOf(spec.field("matchConstraints"));
  const kind = dataKindOf(constraints);
  const validations = spec.field("validations").list();
  if (kind === undefined || validations.length !== 1) {
    input.root.refuse(KEEP_RULE);
    return;
  }
  const variables = variablesOf(spec);
  const actions = spec.field("validationActions").texts();
  const isDenied = actions.length === 0 || actions.includes("Deny");
  const conditions = conditionsOf(spec.field("matchConditions"), variables);
  let message: string | undefined;
  for (const each of validations) {
    message ??= messageIn(each);
    each.ignore("message", "messageExpression", "reason");
    const expression = each.field("expression");
    const cel = celOf(expression, variables);
    // The request is denied if no alternative of the expression holds.
    if (cel !== undefined)
      conditions.push(...partsOf(cel, "||").flatMap((part) => conditionsIn(expression, negationOf(part))));
  }
  const writers: JsonObject[] = [];
  const identity = identityOf(constraints, conditions, input.namespace, (comparison) => {
    const excepted = comparison === undefined ? undefined : writersOf(comparison);
    writers.push(...(excepted ?? []));
    return excepted !== undefined;
  });
  if (!["UPDATE", "DELETE"].every((each) => identity.operations.includes(each)))
    constraints.place.lose("protect denies both changes and the deletion; this policy denies only one of them");
  const namespaces = (identity.namespaces ?? []).filter((each) => !LEFT_OUT.includes(each));
  if (namespaces.length === 0)
    constraints.place.lose("the Secret has no fixed namespace that Kyverno does not leave out; add protect by hand");
  if (!isDenied) {
    spec.lose("this policy only reports; protect would deny. Add protect to a binding of this Secret if you want that");
    return;
  }
  const concerned = namespaces.flatMap((namespace) =>
    identity.names.map((name) => drafts.of(kind, namespace, name, input)),
  );
  if (!drafts.isUnderstood(input, spec)) drafts.selectNothing(input, concerned, "Protects nothing.");
  else for (const draft of concerned) protect(draft, { writers, roles: [], message });
}

/** The users for whom a policy makes an exception. Undefined if the comparison is about something else. */
function writersOf({ path, globs, isNegated, isContaining }: Comparison): JsonObject[] | undefined {
  const isExactly = isNegated && !globs.some(isGlob);
  if (isExactly && path === "request.userInfo.username" && !isContaining)
    return globs.flatMap((name) => writerOf("User", name));
  if (isExactly && path === "request.userInfo.groups" && isContaining)
    // Cluster admins may always write.
    return globs.filter((name) => name !== "system:masters").map((name) => ({ kind: "Group", name }));
  return undefined;
}
