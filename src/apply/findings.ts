/**
 * Says which paths of a binding an API server's refusal is about, and which rule they break. All texts come from the
 * binding and from the published schema; the server's own texts are only compared with them. Pure.
 */
import { FieldPath, keySegment, type Segment } from "../apimachinery/field-path.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import type { ApiError, Cause } from "../kube/api-error.ts";
import type { SchemaAt } from "../transform/schema-check.ts";

/** A path of the binding, and where it leads in the object that the write makes: with indexes instead of conditions. */
export interface Place {
  path: FieldPath;
  at: FieldPath;
  /** How many segments of it exist already. */
  existing: number;
}

/** `at` is the path with indexes as far as its elements exist in the object. New elements are appended in their order. */
export function placesIn(object: unknown, located: readonly { path: FieldPath; place: Pick<Place, "at"> }[]): Place[] {
  const added = new Map<string, string[]>();
  return located.map(({ path, place }) => {
    const segments: Segment[] = [...place.at.segments];
    for (let depth = segments.length; depth < path.segments.length; depth++) {
      const segment = path.segments[depth] as Segment;
      const list = String(new FieldPath(segments));
      const others = added.get(list) ?? [];
      const element = String(path.upTo(depth + 1));
      if (segment.kind !== "key" && !others.includes(element)) added.set(list, [...others, element]);
      const before = new FieldPath(segments).get(object);
      const { length } = Array.isArray(before) ? before : [];
      const at = others.includes(element) ? others.indexOf(element) : others.length;
      segments.push(segment.kind === "key" ? segment : { kind: "index", index: length + at });
    }
    const at = new FieldPath(segments);
    const existing = segments.findIndex((_, depth) => at.upTo(depth + 1).get(object) === undefined);
    return { path, at, existing: existing < 0 ? segments.length : existing };
  });
}

interface Finding {
  /** Such as `spec.port must be at most 65535`. */
  clause: string;
  /** It is about a path of the binding, not about an object around it or another field. */
  isExact: boolean;
}

const MAX_CLAUSES = 8;
/** How much of a rule a message quotes, in characters. */
const MAX_RULE = 200;

/** What the server's answer says about the paths. No clauses if it names no fields. */
export function findingsOf(error: Pick<ApiError, "causes">, places: readonly Place[], schemaAt: SchemaAt) {
  const found = error.causes.reveal().map((cause) => findingOf(cause, places, schemaAt));
  const clauses = [...new Set(found.map(({ clause }) => clause))].slice(0, MAX_CLAUSES);
  return { clauses, areExact: found.length > 0 && found.every(({ isExact }) => isExact) };
}

function findingOf(cause: Cause, places: readonly Place[], schemaAt: SchemaAt): Finding {
  for (const { path, at } of places) {
    const rest = restBelow(cause.field, at);
    if (rest === undefined) continue;
    const { where, isWhole } = within(path, rest, schemaAt);
    const rule = isWhole ? ruleAt(cause, where, schemaAt) : UNCLEAR;
    return { clause: `${where} ${rule}`, isExact: true };
  }
  for (const { path, at } of places) {
    const around = follow(cause.field, at);
    if (around === undefined) continue;
    const where = path.upTo(around.depth);
    const name = around.depth === 0 ? "the object" : String(where);
    return { clause: `${name} ${ruleOf(cause, schemaAt(where))}`, isExact: false };
  }
  const condition = conditionOf(cause, places, schemaAt);
  if (condition !== undefined) return condition;
  const isMissing = cause.reason === "FieldValueRequired";
  const beside = isMissing
    ? besideOf(cause.field, places, schemaAt)
    : (duplicateOf(cause, places, schemaAt) ?? siblingOf(cause, places, schemaAt));
  if (beside !== undefined) return beside;
  const is = isMissing ? "is missing" : "is not valid";
  return { clause: `another field, which the binding does not write, ${is}`, isExact: false };
}

/** The text of the server's field below the path; undefined if it is around the path or elsewhere. */
function restBelow(field: string, at: FieldPath): string | undefined {
  const found = follow(field, at);
  return found?.depth === at.segments.length ? found.rest : undefined;
}

/** The segments of the path that lead to the server's field or towards it, and the rest of the field. Undefined if it is elsewhere. */
function follow(field: string, at: FieldPath): { depth: number; rest: string } | undefined {
  let rest = field === "<nil>" ? "" : field;
  for (const [depth, segment] of at.segments.entries()) {
    if (rest === "") return { depth, rest };
    const name = segment.kind === "key" ? segment.key : segment.kind === "index" ? String(segment.index) : "";
    const spelled = segment.kind === "key" ? [depth === 0 ? name : `.${name}`, `[${name}]`] : [`[${name}]`];
    const found = spelled.find((each) => rest.startsWith(each) && /^(?:[.[]|$)/.test(rest.slice(each.length)));
    if (found === undefined) return undefined;
    rest = rest.slice(found.length);
  }
  return { depth: at.segments.length, rest };
}

/** A field by which a path names its element. A write of a new element has it too. */
function conditionOf(cause: Cause, places: readonly Place[], schemaAt: SchemaAt): Finding | undefined {
  for (const { path, at, existing } of places) {
    for (const [depth, segment] of path.segments.entries()) {
      for (const { key } of segment.kind === "element" ? segment.conditions : []) {
        if (restBelow(cause.field, at.upTo(depth + 1).with(keySegment(key))) !== "") continue;
        const where = path.upTo(depth + 1).with(keySegment(key));
        return { clause: `${where} ${ruleAt(cause, where, schemaAt)}`, isExact: existing <= depth };
      }
    }
  }
  return undefined;
}

/** A required field of an object to which the binding writes other fields, if the schema has it. */
function besideOf(field: string, places: readonly Place[], schemaAt: SchemaAt): Finding | undefined {
  const around = places.flatMap(({ path, at, existing }) => {
    const depth = at.segments.findLastIndex((_, n) => restBelow(field, at.upTo(n)) !== undefined);
    const rest = depth < 0 ? undefined : restBelow(field, at.upTo(depth));
    return rest === undefined ? [] : [{ depth, path, rest, existing }];
  });
  const [nearest] = around.toSorted((a, b) => b.depth - a.depth);
  if (nearest === undefined) return undefined;
  const { depth, path, rest, existing } = nearest;
  const { where, isWhole } = within(path.upTo(depth), depth === 0 ? `.${rest}` : rest, schemaAt);
  if (!isWhole) return undefined;
  return { clause: `${where} is required, and the binding does not write it`, isExact: depth > existing };
}

/** An element that the binding writes, or whose key it writes, in the list in which the server names the later duplicate. */
function duplicateOf({ reason, field }: Cause, places: readonly Place[], schemaAt: SchemaAt): Finding | undefined {
  if (reason !== "FieldValueDuplicate") return undefined;
  for (const { path, at } of places) {
    const depth = at.segments.findLastIndex(({ kind }) => kind === "index");
    const rest = depth < 0 ? undefined : restBelow(field, at.upTo(depth));
    if (rest === undefined || !/^\[\d+\]/.test(rest)) continue;
    const keys = schemaAt(path.upTo(depth))?.["x-kubernetes-list-map-keys"] ?? [];
    const [key, ...more] = at.segments.slice(depth + 1);
    const isKey = key?.kind === "key" && more.length === 0 && keys.includes(key.key);
    if (key === undefined || isKey)
      return { clause: `${path.upTo(depth + 1)} must be unique in its list`, isExact: false };
  }
  return undefined;
}

/** A field of the object in which the binding writes another one, if the schema has it: the two may exclude each other. */
function siblingOf(cause: Cause, places: readonly Place[], schemaAt: SchemaAt): Finding | undefined {
  for (const { path, at } of places) {
    const depth = at.segments.length - 1;
    const rest = depth > 0 ? restBelow(cause.field, at.upTo(depth)) : undefined;
    if (rest === undefined) continue;
    const { where, isWhole } = within(path.upTo(depth), rest, schemaAt);
    if (!isWhole) continue;
    const rule = ruleAt(cause, where, schemaAt);
    const clause = rule === UNCLEAR ? `${where} is not valid beside ${path}` : `${where} ${rule}`;
    return { clause: `${clause}, and the binding does not write it`, isExact: false };
  }
  return undefined;
}

const CHILD = /^(?:\.([A-Za-z_][\w-]*)|\[(\d{1,9})\])/;

/** The field that `rest` names below a path, as far as the schema knows it: any other name may be a value. */
function within(path: FieldPath, rest: string, schemaAt: SchemaAt): { where: FieldPath; isWhole: boolean } {
  let [where, left] = [path, rest];
  for (;;) {
    const [text = "", key, index] = CHILD.exec(left) ?? [];
    const schema = schemaAt(where);
    if (key !== undefined && Object.hasOwn(schema?.properties ?? {}, key)) where = where.with({ kind: "key", key });
    else if (index !== undefined && schema?.type === "array")
      where = where.with({ kind: "index", index: Number(index) });
    else return { where, isWhole: left === "" };
    left = left.slice(text.length);
  }
}

/** The rule that a field breaks: one of its own, or one of an object around it that names the field by `fieldPath`. */
function ruleAt(cause: Cause, where: FieldPath, schemaAt: SchemaAt): string {
  const own = ruleOf(cause, schemaAt(where));
  if (own !== UNCLEAR) return own;
  const parents = where.segments.map((_, depth) => schemaAt(where.upTo(depth))?.["x-kubernetes-validations"] ?? []);
  const rules = parents.flat().filter(({ fieldPath }) => fieldPath !== undefined);
  return celRule(cause.message, { "x-kubernetes-validations": rules }) ?? UNCLEAR;
}

/** The rule that a field breaks, by the server's reason and the schema. */
function ruleOf({ reason, message }: Cause, schema: OpenApiSchema = {}): string {
  const { enum: choices, maxLength, maxItems, maxProperties } = schema;
  const cel = celRule(message, schema);
  if (cel !== undefined) return cel;
  switch (reason) {
    case "FieldValueRequired":
      return "is required";
    case "FieldValueNotSupported":
      return choices ? `must be one of ${shortened(choices.map((each) => JSON.stringify(each)).join(", "))}` : UNCLEAR;
    case "FieldValueTooLong":
      return maxLength === undefined ? "is too long" : `must have at most ${maxLength} characters`;
    case "FieldValueTooMany": {
      const most = maxItems ?? maxProperties;
      return most === undefined ? "has too many elements" : `must have at most ${most} elements`;
    }
    case "FieldValueDuplicate":
      return "must be unique in its list";
    case "FieldValueForbidden":
      return "may not be set";
    case "FieldValueTypeInvalid":
      return "has another type";
    default:
      return schemaRule(message, schema) ?? computedRule(schema) ?? UNCLEAR;
  }
}

const UNCLEAR = "is not valid";

/** The CEL rule whose fixed text the server's message has. */
function celRule(message: string, { "x-kubernetes-validations": rules = [] }: OpenApiSchema): string | undefined {
  const broken = rules.find((each) => message.endsWith(each.message?.trim() || `failed rule: ${each.rule.trim()}`));
  return broken && celText(broken);
}

/** The only CEL rule whose text depends on the value. */
function computedRule({ "x-kubernetes-validations": rules = [] }: OpenApiSchema): string | undefined {
  const [rule, ...more] = rules.filter(({ messageExpression }) => messageExpression !== undefined);
  return rule !== undefined && more.length === 0 ? celText(rule) : undefined;
}

const celText = ({ message, rule }: { message?: string; rule: string }): string =>
  message?.trim() ? `breaks the rule "${shortened(message)}"` : `breaks the CEL rule \`${shortened(rule)}\``;

/** The rules of a schema whose kind the server's message names. */
function schemaRule(message: string, schema: OpenApiSchema): string | undefined {
  const { pattern, format, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  const { minLength, minItems, minProperties } = schema;
  const rules: readonly (readonly [server: RegExp, limit: unknown, text: string])[] = [
    [/ should match '/, pattern, `must match the pattern ${shortened(pattern ?? "")}`],
    [/ must be of type /, format, `must be of the format ${format}`],
    [/ should be greater than /, minimum, `must be ${exclusiveMinimum ? "more than" : "at least"} ${minimum}`],
    [/ should be less than /, maximum, `must be ${exclusiveMaximum ? "less than" : "at most"} ${maximum}`],
    [/ should be a multiple of /, multipleOf, `must be a multiple of ${multipleOf}`],
    [/ should be at least \d+ chars /, minLength, `must have at least ${minLength} characters`],
    [/ should have at least \d+ items/, minItems, `must have at least ${minItems} elements`],
    [/ should have at least \d+ properties/, minProperties, `must have at least ${minProperties} fields`],
  ];
  return rules.find(([server, limit]) => limit !== undefined && server.test(message))?.[2];
}

function shortened(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, " ");
  return line.length > MAX_RULE ? `${line.slice(0, MAX_RULE)}…` : line;
}
