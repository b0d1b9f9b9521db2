/** Reads match, exclude and conditions of Kyverno rules, as far as Inlay has the same selection. Pure. */
import { isGlob, nameMatcher } from "../apimachinery/glob.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { compact, exceptNames, labelSelectorOf, nonEmpty } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

/** The namespace of the object that changes, as the value of a field. */
export const SAME_NAMESPACE = /^\{\{\s*request\.(?:namespace|object\.metadata\.namespace)\s*\}\}$/;
export const KEEP_RULE = "Inlay has nothing for this rule; keep Kyverno for it";

/** Kyverno's default configuration (`resourceFilters`) leaves out these namespaces, and the objects in them. */
export const LEFT_OUT = ["kube-system", "kube-public", "kube-node-lease", "kyverno"];

/** Objects that a rule matches: one block of `any` or `all`, or the older form without them. All of its criteria must match. */
export interface Match {
  readonly block: Tracked;
  readonly kinds: readonly string[];
  readonly names: readonly string[];
  readonly namespaces: readonly string[];
  readonly operations: readonly string[];
  /** Handles the selector: call it only where it counts. */
  selector(): JsonObject | undefined;
}

export function matchesOf(field: Tracked): Match[] {
  const all = field.field("all").list();
  if (all.length > 1) field.field("all").lose("several blocks must match together; write one block, and convert again");
  const older = field.field("resources").exists ? [field] : [];
  const blocks = [...field.field("any").list(), ...all.slice(0, 1), ...older];
  return blocks.map((block) => {
    const resources = block.field("resources");
    const [name, names] = [resources.field("name").text(), resources.field("names").texts()];
    if (name !== undefined && names.length > 0)
      resources.field("name").lose("name and names must match together; write names alone, and convert again");
    return {
      block,
      kinds: resources.field("kinds").texts().map(kindOf),
      names: [...(name === undefined ? [] : [name]), ...names],
      namespaces: resources.field("namespaces").texts(),
      operations: resources.field("operations").texts(),
      selector: () => selectorOf(resources.field("selector")),
    };
  });
}

/** What the rule excludes. Reports what no selection of Inlay can leave out. */
export function excludedBy(rule: Tracked): Match[] {
  const blocks = matchesOf(rule.field("exclude"));
  for (const { block, kinds, operations } of blocks) {
    const resources = block.field("resources");
    if (operations.length > 0)
      resources.field("operations").lose("an exclusion of some operations can't be selected; write it by hand");
    if (kinds.some(isGlob))
      resources.field("kinds").lose("Inlay has no wildcards here; write each kind, and convert again");
  }
  return blocks;
}

/** `v1/Secret` and `Secret` are the same kind here. */
export const kindOf = (text: string): string => text.replace(/^\*?\/?v1\//, "");

export const isExact = (name: string): boolean => /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name);

/** Secrets or ConfigMaps with fixed names. */
export const isAboutData = ({ kinds, names }: Pick<Match, "kinds" | "names">): boolean =>
  kinds.length > 0 &&
  kinds.every((kind) => kind === "Secret" || kind === "ConfigMap") &&
  names.length > 0 &&
  names.every(isExact);

/** Kyverno has wildcards in labels, and Inlay has not. */
function selectorOf(selector: Tracked): JsonObject | undefined {
  if (!selector.exists) return undefined;
  if (isGlob(JSON.stringify(selector.peek()))) {
    selector.refuse("labels with wildcards can't be selected; write matchExpressions by hand");
    return undefined;
  }
  return labelSelectorOf(selector);
}

/** The names of Namespaces that a block selects. Kyverno compares `namespaces` with the name of a Namespace, too. */
function namespaceNames({ names, namespaces, block }: Match): readonly string[] {
  if (names.length > 0 && namespaces.length > 0)
    block
      .field("resources", "namespaces")
      .lose("names and namespaces must match together; write names alone, and convert again");
  return names.length > 0 ? names : namespaces;
}

/** The selectors of namespaces that a rule about Namespaces matches: one for each block. `except` are further names. */
export function namespaceSelectorsOf(rule: Tracked, except: readonly string[]): JsonObject[] {
  const excluded = excludedBy(rule).filter(({ kinds }) => kinds.length === 0 || kinds.includes("Namespace"));
  const expressions = excluded.flatMap((match) => negated(match));
  const names = excluded.flatMap(namespaceNames);
  return matchesOf(rule.field("match")).map((match) =>
    namespaceSelector(namespaceNames(match), match.selector() ?? {}, { names: [...names, ...except], expressions }),
  );
}

/** A selector of namespaces without those that Kyverno leaves out by default. */
export function namespaceSelector(
  names: readonly string[],
  { matchExpressions, ...labels }: JsonObject,
  except: { readonly names: readonly string[]; readonly expressions: readonly JsonObject[] },
): JsonObject {
  const all = [...((matchExpressions as JsonObject[] | undefined) ?? []), ...except.expressions];
  const selected = compact({
    names: names.includes("*") ? undefined : nonEmpty(names),
    ...labels,
    matchExpressions: nonEmpty(all),
  });
  const isExcepted = nameMatcher(except.names.filter(isGlob));
  const leftOut = LEFT_OUT.filter((name) => !isExcepted(name));
  return exceptNames(selected, [...new Set([...except.names, ...leftOut])]);
}

const OPPOSITES: Readonly<Record<string, string>> = {
  In: "NotIn",
  NotIn: "In",
  Exists: "DoesNotExist",
  DoesNotExist: "Exists",
};

/** The labels that a namespace must have so that a block does not exclude it. */
function negated({ names, namespaces, block, selector }: Match): JsonObject[] {
  const { matchLabels = {}, matchExpressions = [] } = selector() ?? {};
  const [first, ...more] = [
    ...Object.entries(matchLabels as JsonObject).map(([key, value]) => ({ key, operator: "In", values: [value] })),
    ...(matchExpressions as JsonObject[]),
  ] as JsonObject[];
  if (first === undefined) {
    if (names.length === 0 && namespaces.length === 0 && block.field("resources").exists)
      block.field("resources").lose("excludes namespaces without a name or selector; write namespaceSelector by hand");
    return [];
  }
  const operator = OPPOSITES[String(first["operator"])];
  if (names.length === 0 && namespaces.length === 0 && more.length === 0 && operator !== undefined)
    return [{ ...first, operator }];
  block.lose(
    "an exclusion by several labels, or by name and label, can't be selected; write namespaceSelector by hand",
  );
  return [];
}

/** Whether a block of `exclude` names the object. Handles kinds, names and namespaces. */
export function isExcluded(rule: Tracked, kind: string, namespace: string, name: string): boolean {
  const isMatch = (globs: readonly string[], text: string) => globs.length === 0 || nameMatcher(globs)(text);
  return excludedBy(rule).some(({ block, kinds, names, namespaces, operations }) => {
    const resources = block.field("resources");
    if (!resources.exists || operations.length > 0) return false;
    if (block.entries().length > 1)
      resources.lose("an object is excluded for some users only; write a binding for each protected object");
    return (kinds.length === 0 || kinds.includes(kind)) && isMatch(names, name) && isMatch(namespaces, namespace);
  });
}

/** A rule in `policyNamespace` matches there only. */
const namespacesIn = ({ namespaces }: Match, policyNamespace: string): readonly string[] =>
  namespaces.length === 0 && policyNamespace !== "" ? [policyNamespace] : namespaces;

/** The selector of the namespaces in which a rule matches, without others and those that Kyverno leaves out. */
export const namespaceSelectorIn = (match: Match, policyNamespace: string, except: readonly string[]): JsonObject =>
  exceptNames(compact({ names: nonEmpty(namespacesIn(match, policyNamespace)) }), [
    ...new Set([...except, ...LEFT_OUT]),
  ]);

/** The namespaces of a Secret that a rule in `policyNamespace`, or in the cluster, matches. Those that Kyverno leaves out are reported. */
export function namespacesOf(match: Match, policyNamespace: string): string[] {
  const all = namespacesIn(match, policyNamespace);
  const leftOut = all.filter((namespace) => LEFT_OUT.includes(namespace));
  if (leftOut.length > 0)
    match.block
      .field("resources", "namespaces")
      .lose(
        `Kyverno leaves out ${leftOut.join(", ")} by default, so the rule does nothing there; check whether it does`,
      );
  return all.filter((namespace) => !LEFT_OUT.includes(namespace));
}

const OPERATION = /^\{\{\s*request\.operation(\s*\|\|\s*'BACKGROUND')?\s*\}\}$/;
const OPERATIONS = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

/** The operations for which a rule acts: those of the match, and of conditions such as `{{ request.operation }} AnyIn [UPDATE, DELETE]`. */
export function operationsOf({ operations }: Pick<Match, "operations">, ...conditions: readonly Tracked[]): string[] {
  const sets = [operations.length > 0 ? operations : OPERATIONS, ...conditions.map(operationsIn)];
  return OPERATIONS.filter((each) => sets.every((set) => set.includes(each)));
}

/** The operations that conditions permit. Other conditions are reported. */
function operationsIn(conditions: Tracked): readonly string[] {
  if (conditions.field("conditions").exists) return operationsIn(conditions.field("conditions"));
  const isList = Array.isArray(conditions.peek());
  const all = (isList ? conditions : conditions.field("all")).list().map(operationsWith);
  const any = isList ? [] : conditions.field("any").list().map(operationsWith);
  return OPERATIONS.filter(
    (each) => all.every((set) => set.includes(each)) && (any.length === 0 || any.some((set) => set.includes(each))),
  );
}

function operationsWith(condition: Tracked): readonly string[] {
  const [key, operator, value] = condition.fields("key", "operator", "value");
  const isKnown = /^(?:Not)?Equals?$|^(?:Any|All)?(?:Not)?In$/.test(String(operator.peek()));
  if (!OPERATION.test(String(key.peek())) || !isKnown) {
    condition.refuse("Inlay has no such condition; check whether you need it");
    return OPERATIONS;
  }
  condition.ignore("key", "operator");
  const named = Array.isArray(value.peek()) ? value.texts() : [value.text() ?? ""];
  return !String(operator.peek()).includes("Not") ? named : OPERATIONS.filter((each) => !named.includes(each));
}
