/** Reads what Kyverno's policies with CEL match: their constraints and conditions, as far as Inlay has the same selection. Pure. */
import { isGlob } from "../apimachinery/glob.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { type Cel, operandsOf, parseCel, partsOf, pathOf, textOf, textsOf, type Variables } from "./cel-syntax.ts";
import { translated } from "./go-expression.ts";
import type { DataObject } from "./known-objects.ts";
import { isExact } from "./kyverno-match.ts";
import { labelSelectorOf } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

/** One rule of `matchConstraints`, and the selectors beside it. */
export interface Constraints {
  readonly place: Tracked;
  readonly groups: readonly string[];
  readonly versions: readonly string[];
  readonly resources: readonly string[];
  readonly operations: readonly string[];
  readonly names: readonly string[];
  readonly exceptNames: readonly string[];
  readonly namespaceSelector: JsonObject | undefined;
  readonly objectSelector: JsonObject | undefined;
}

export function constraintsOf(field: Tracked): Constraints {
  const rules = field.field("resourceRules").list();
  if (rules.length !== 1) field.field("resourceRules").lose("write one rule for each policy, and convert again");
  const [rule = field.field("resourceRules")] = rules;
  const texts = (name: string) => rule.field(name).texts();
  rule.ignore("scope");
  field.ignore("matchPolicy");
  const resourceNames = texts("resourceNames");
  const names = possible(resourceNames);
  if (names.length === 0 && resourceNames.length > 0) rule.field("resourceNames").lose(NO_NAME);
  const exceptNames = field
    .field("excludeResourceRules")
    .list()
    .flatMap((each) => {
      each.ignore("scope");
      const isOfAll = (name: string) => {
        const excluded = each.field(name).texts();
        return excluded.includes("*") || texts(name).every((text) => excluded.includes(text));
      };
      if (!["apiGroups", "apiVersions", "operations", "resources"].map(isOfAll).every(Boolean))
        each.lose("Inlay excludes objects for all that the policy matches; write the selection by hand");
      const names = each.field("resourceNames").texts();
      if (names.length === 0) each.lose("Inlay excludes objects by their names; write the selection by hand");
      return possible(names);
    });
  return {
    place: field,
    groups: texts("apiGroups"),
    versions: texts("apiVersions"),
    resources: texts("resources"),
    operations: texts("operations"),
    names,
    exceptNames,
    namespaceSelector: labelSelectorOf(field.field("namespaceSelector")),
    objectSelector: labelSelectorOf(field.field("objectSelector")),
  };
}

const NO_NAME =
  "Kyverno reads * and ? as a part of a name here, and no object has such a name; write the names by hand";

/** Names and labels have no * and ?, which Kyverno does not read as wildcards in CEL. */
const possible = (texts: readonly string[]): string[] => texts.filter((each) => !isGlob(each));

/** The kind of Secrets or ConfigMaps. Undefined for other resources. */
export const kindOfPlural = (plural: string | undefined): DataObject["kind"] | undefined =>
  plural === "secrets" ? "Secret" : plural === "configmaps" ? "ConfigMap" : undefined;

/** The kind of the matched Secrets or ConfigMaps. Undefined for other resources. */
export const dataKindOf = (constraints: Constraints): DataObject["kind"] | undefined =>
  isOfCore(constraints) ? kindOfPlural(constraints.resources.join()) : undefined;

export const isOfNamespaces = (constraints: Constraints): boolean =>
  isOfCore(constraints) && constraints.resources.join() === "namespaces";

export const isOfV1 = ({ versions }: Constraints): boolean => versions.some((each) => each === "v1" || each === "*");

const isOfCore = (constraints: Constraints): boolean =>
  isOfV1(constraints) && constraints.groups.length === 1 && constraints.groups[0] === "";

/** The variables of a policy that Inlay can read. Others are reported where they are used. */
export function variablesOf(spec: Tracked): Variables {
  const variables = new Map<string, Cel>();
  for (const each of spec.field("variables").list()) {
    const [name, expression] = each.textsOf("name", "expression");
    if (name === undefined || expression === undefined) continue;
    const read = translated(
      () => parseCel(expression, variables),
      () => {},
    );
    if (read !== undefined) variables.set(name, read);
  }
  return variables;
}

/** Reads the expression, or reports it. */
export function celOf(field: Tracked, variables: Variables): Cel | undefined {
  const text = field.text();
  if (text === undefined) return undefined;
  return translated(
    () => parseCel(text, variables),
    (why) => field.lose(`the expression has ${why}; keep Kyverno for this policy`),
  );
}

/** A part of a condition, all of which must hold. */
export interface Condition {
  readonly place: Tracked;
  readonly part: Cel;
}

export function conditionsOf(list: Tracked, variables: Variables): Condition[] {
  return list.list().flatMap((each) => {
    each.ignore("name");
    const expression = each.field("expression");
    const cel = celOf(expression, variables);
    return cel === undefined ? [] : conditionsIn(expression, cel);
  });
}

export const conditionsIn = (place: Tracked, cel: Cel): Condition[] =>
  partsOf(cel, "&&").map((part) => ({ place, part }));

export const negationOf = (part: Cel): Cel => ({ kind: "operation", operator: "!_", args: [part] });

/** A comparison of a field with texts, or with globs; or that a list or map contains a text. Texts that the field can't have are left out. */
export interface Comparison {
  readonly path: string;
  readonly globs: readonly string[];
  readonly isNegated: boolean;
  /** Whether the field contains the texts, or is one of them. */
  readonly isContaining: boolean;
}

/** Undefined if the part is something else. */
export function comparisonOf(part: Cel): Comparison | undefined {
  const [negated] = operandsOf(part, "!_") ?? [];
  if (negated !== undefined) {
    const inner = comparisonOf(negated);
    return inner && { ...inner, isNegated: !inner.isNegated };
  }
  if (operandsOf(part, "||") !== undefined) {
    const all = partsOf(part, "||").map(comparisonOf);
    const [first] = all;
    const isSame = all.every(
      (each) => each?.path === first?.path && each?.isNegated === false && each.isContaining === first?.isContaining,
    );
    return first === undefined || !isSame ? undefined : { ...first, globs: all.flatMap((each) => each?.globs ?? []) };
  }
  if (part.kind === "operation") return comparedOf(part.operator, part.args);
  return part.kind === "call" ? calledOf(part) : undefined;
}

/** Undefined if one of the first two is. */
const makeComparison = (
  path: string | undefined,
  globs: readonly string[] | undefined,
  { isNegated = false, isContaining = false }: Partial<Comparison> = {},
): Comparison | undefined =>
  path === undefined || globs === undefined ? undefined : { path, globs, isNegated, isContaining };

function comparedOf(operator: string, [left, right]: readonly Cel[]): Comparison | undefined {
  if (left === undefined || right === undefined) return undefined;
  if (operator === "==" || operator === "!=") {
    const [path, text] = [fieldOf(left) ?? fieldOf(right), textOf(right) ?? textOf(left)];
    return text ? makeComparison(path, textsFor(path, [text]), { isNegated: operator === "!=" }) : undefined;
  }
  if (operator !== "in") return undefined;
  const [list, field] = [textsOf(right), fieldOf(left)];
  if (list !== undefined && field !== undefined) return makeComparison(field, textsFor(field, list));
  const member = textOf(left);
  return makeComparison(fieldOf(right), member === undefined ? undefined : [member], { isContaining: true });
}

/** A text is no glob. */
const textsFor = (path: string | undefined, texts: readonly string[]): readonly string[] =>
  path !== undefined && ([...NAME, ...NAMESPACE].includes(path) || path.startsWith(`${LABELS}.`))
    ? possible(texts)
    : texts;

const METHODS: Readonly<Record<string, (text: string) => string>> = {
  startsWith: (text) => `${text}*`,
  endsWith: (text) => `*${text}`,
  contains: (text) => `*${text}*`,
};

function calledOf({ name, of, args }: Extract<Cel, { kind: "call" }>): Comparison | undefined {
  const [first, second] = args;
  if (name === "has" && of === undefined && first?.kind === "field")
    return makeComparison(fieldOf(first.of), [first.name], { isContaining: true });
  const path = of === undefined ? undefined : fieldOf(of);
  if (path === undefined || first === undefined) return undefined;
  // list.exists(each, each == "text")
  if (name === "exists" && first.kind === "name" && second !== undefined) {
    const inner = comparisonOf(second);
    const isMember = inner?.path === first.name && !inner.isNegated && !inner.isContaining;
    return isMember ? makeComparison(path, inner.globs, { isContaining: true }) : undefined;
  }
  const text = textOf(first);
  const method = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined;
  return method === undefined || text === undefined || isGlob(text) ? undefined : makeComparison(path, [method(text)]);
}

/** The path as text. `x.?y.orValue("")` is `x.y`: no comparison is with an empty text. */
function fieldOf(tree: Cel): string | undefined {
  if (tree.kind === "call" && tree.name === "orValue" && tree.of !== undefined && tree.args.length === 1)
    return textOf(tree.args[0] as Cel) === "" ? fieldOf(tree.of) : undefined;
  return pathOf(tree)?.join(".");
}

const LABELS = "object.metadata.labels";
const NAME = ["object.metadata.name", "oldObject.metadata.name", "request.name"];
const NAMESPACE = [
  "object.metadata.namespace",
  "oldObject.metadata.namespace",
  "request.namespace",
  "namespaceObject.metadata.name",
];
const OF_NAMESPACE = "kubernetes.io/metadata.name";

/** What the conditions of a policy about fixed objects say. */
export interface Identity {
  readonly names: readonly string[];
  /** Undefined for all namespaces. */
  readonly namespaces: readonly string[] | undefined;
  readonly operations: readonly string[];
}

const OPERATIONS = ["CREATE", "UPDATE", "DELETE"];

/** The names, namespaces and operations of the objects. Reports conditions that `others` does not handle. */
export function identityOf(
  constraints: Constraints,
  conditions: readonly Condition[],
  policyNamespace: string,
  others: (comparison: Comparison | undefined, condition: Condition) => boolean = () => false,
): Identity {
  const names: (readonly string[])[] = constraints.names.length > 0 ? [constraints.names] : [];
  const namespaces: (readonly string[])[] = policyNamespace === "" ? [] : [[policyNamespace]];
  const { matchLabels = {}, matchExpressions } = constraints.namespaceSelector ?? {};
  const { [OF_NAMESPACE]: label, ...labels } = matchLabels as Record<string, string>;
  if (label !== undefined) namespaces.push([label]);
  if (Object.keys(labels).length > 0 || matchExpressions !== undefined || constraints.objectSelector !== undefined)
    constraints.place.lose("Inlay selects these objects by names and namespaces; write them, and convert again");
  const all = constraints.operations.includes("*") || constraints.operations.length === 0;
  const operations = [all ? OPERATIONS : constraints.operations];
  for (const condition of conditions) {
    const comparison = comparisonOf(condition.part);
    if (others(comparison, condition)) continue;
    const { path = "", globs = [], isNegated = true, isContaining = true } = comparison ?? {};
    if (!isNegated && !isContaining && NAME.includes(path)) names.push(globs);
    else if (!isNegated && !isContaining && NAMESPACE.includes(path)) namespaces.push(globs);
    else if (!isContaining && path === "request.operation")
      operations.push(isNegated ? OPERATIONS.filter((each) => !globs.includes(each)) : globs);
    else if (!isTrue(condition.part))
      condition.place.lose("Inlay can't read this condition; write the selection by hand");
  }
  const excepted = new Set(constraints.exceptNames);
  const [ofNames, ofNamespaces] = [common(names), common(namespaces)];
  if (
    ofNames.length === 0 ||
    (namespaces.length > 0 && ofNamespaces.length === 0) ||
    ![...ofNames, ...ofNamespaces].every(isExact)
  )
    constraints.place.lose("the objects have no fixed names and namespaces; write the selection by hand");
  return {
    names: ofNames.filter((name) => isExact(name) && !excepted.has(name)),
    namespaces: namespaces.length === 0 ? undefined : ofNamespaces.filter(isExact),
    operations: OPERATIONS.filter((each) => operations.every((set) => set.includes(each))),
  };
}

const common = ([first = [], ...more]: readonly (readonly string[])[]): string[] =>
  first.filter((each) => more.every((set) => set.includes(each)));

export function isTrue(part: Cel): boolean {
  const [negated] = operandsOf(part, "!_") ?? [];
  return negated === undefined ? isValue(part, true) : isValue(negated, false);
}

const isValue = (part: Cel, value: boolean): boolean => part.kind === "value" && part.value === value;

/** What the conditions of a policy about Namespaces select. */
export function namespaceConditions(conditions: readonly Condition[]): {
  readonly names: readonly string[] | undefined;
  readonly exceptNames: readonly string[];
  readonly expressions: readonly JsonObject[];
} {
  let names: readonly string[] | undefined;
  const exceptNames: string[] = [];
  const expressions: JsonObject[] = [];
  for (const { place, part } of conditions) {
    const { path = "", globs = [], isNegated = false, isContaining = false } = comparisonOf(part) ?? {};
    const key = path.startsWith(`${LABELS}.`) ? path.slice(LABELS.length + 1) : undefined;
    if (NAME.includes(path) && !isContaining) {
      if (isNegated) exceptNames.push(...globs);
      else if (globs.length === 0) place.lose(NO_NAME);
      else if (names === undefined) names = globs;
      else place.lose("several conditions on the name; write names by hand");
    } else if (key !== undefined && !isContaining && !globs.some(isGlob)) {
      // A missing label is an error, so that Kyverno skips the policy.
      if (isNegated) expressions.push({ key, operator: "Exists" });
      if (globs.length === 0 && !isNegated) place.lose(NO_NAME);
      else if (globs.length > 0) expressions.push({ key, operator: isNegated ? "NotIn" : "In", values: [...globs] });
    } else if (path === LABELS && isContaining && globs.length === 1)
      expressions.push({ key: globs[0] as string, operator: isNegated ? "DoesNotExist" : "Exists" });
    else if (!(path === "object.metadata" && isContaining && globs.join() === "labels" && !isNegated) && !isTrue(part))
      place.lose("Inlay can't read this condition; write namespaceSelector by hand");
  }
  return { names, exceptNames, expressions };
}
