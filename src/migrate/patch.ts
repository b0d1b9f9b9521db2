/** Converts patches with Go templates in their values, as YAML, to the fields of a binding. Pure. */
import type { ScalarTag } from "yaml";
import { FieldPath, keySegment, type Segment } from "../apimachinery/field-path.ts";
import { isObject, stringifyJson } from "../apimachinery/json.ts";
import { type JsonObject, type JsonValue, parseApiVersion } from "../apimachinery/objects.ts";
import { readDocuments } from "../render/documents.ts";
import { call, type Expression, NotTranslated, type Resolve } from "./go-expression.ts";
import { actionsIn, fieldValue, type Part, templateOf, translate } from "./go-template.ts";
import { orLost } from "./parts.ts";
import type { Steps, Tracked } from "./tracked.ts";

/** What a patch changes. */
interface Patched {
  /** How it changes lists: elements with the same name, or the whole list. */
  readonly lists: "merge" | "replace";
  /** Whether a field may have no schema, so that its value decides on the type. */
  readonly isOpen: boolean;
}

/** A strategic merge patch for the kind. Lists of custom resources are replaced as a whole. */
export function patchedOf(apiVersion: string): Patched {
  const { group } = parseApiVersion(apiVersion);
  const isOpen = group.includes(".") && !group.endsWith(".k8s.io");
  return { lists: isOpen ? "replace" : "merge", isOpen };
}

/** The parts of a text that a patch writes at the path. Throws NotTranslated. */
export type Translate = (text: string, at: readonly Segment[]) => Part[];

interface Patch extends Patched {
  readonly translate: Translate;
  /** The actions of the template, which placeholders replace in the YAML. */
  readonly actions: readonly string[];
  /** The field that is reported for a part of the patch, and the lines from there to the part. */
  placeOf(steps: Steps): readonly [Tracked, number];
}

/** Private-use characters, which YAML reads as a part of a word. */
const [OPEN, CLOSE] = ["\uE000", "\uE001"] as const;
const PLACEHOLDERS = /\uE000(\d+)\uE001/g;
const hasTemplate = (text: string): boolean => text.includes(OPEN);
/** Begins a text without quotes that has a template, so that YAML decides on its type. */
const PLAIN = "\uE002";
const PLAIN_TAG: ScalarTag = {
  identify: () => false,
  default: true,
  tag: "tag:yaml.org,2002:str",
  test: new RegExp(OPEN),
  resolve: (text) => `${PLAIN}${text}`,
};
const DIRECTIVE = /^\$(?:patch|retainKeys|deleteFromPrimitiveList|setElementOrder)/;

/** The fields for a patch that is merged at the path `at`. Reports on `place`, a field with the text, what can't be converted. */
export function fieldsOfPatch(
  place: Tracked,
  patched: Patched,
  resolve: Resolve,
  at: readonly Segment[] = [],
): JsonObject[] {
  const parsed = parse(place, (text) => translate(text, resolve), patched, isObject);
  return parsed === undefined ? [] : [...fieldsOf(parsed.value, at, [], parsed.patch)];
}

/** The fields for a patch that is an object, and not a text. */
export function fieldsOfObject(place: Tracked, patched: Patched, translate: Translate): JsonObject[] {
  const actions: string[] = [];
  const value = withPlaceholders(place.take() ?? null, actions);
  if (!isObject(value)) return [];
  const placeOf = (steps: Steps) => {
    const at = steps.reduce<Tracked | undefined>(
      (from, step) => (typeof step === "number" ? from?.list()[step] : from?.field(textOf(step, actions))),
      place,
    );
    return [at ?? place, 0] as const;
  };
  return [...fieldsOf(value, [], [], { ...patched, translate, actions, placeOf })];
}

/** The fields for a patch of JSON (RFC 6902). */
export function fieldsOfJsonPatch(place: Tracked, translate: Translate, isOpen: boolean): JsonObject[] {
  const parsed = parse(place, translate, { lists: "replace", isOpen }, Array.isArray);
  return parsed === undefined ? [] : fieldsOfOperations(parsed.value as JsonValue[], parsed.patch);
}

/** The fields for a patch that an expression at `place` computes: an object, or the operations of a patch of JSON. */
export function fieldsOfValue(place: Tracked, value: JsonValue, patched: Patched, translate: Translate): JsonObject[] {
  const actions: string[] = [];
  const patch: Patch = { ...patched, translate, actions, placeOf: () => [place, 0] };
  const all = withPlaceholders(value, actions);
  return Array.isArray(all) ? fieldsOfOperations(all, patch) : [...fieldsOf(all, [], [], patch)];
}

const FIXED = "Inlay writes values at fixed paths, and has no other operations; write this change by hand";

function fieldsOfOperations(operations: readonly JsonValue[], patch: Patch): JsonObject[] {
  const test = operations.findIndex((each) => isObject(each) && each["op"] === "test");
  if (test >= 0) {
    lose(patch, [test], "the patch has a condition, which a binding can't have; write the changes by hand");
    return [];
  }
  return operations.flatMap((operation, index) => {
    const { op, path, value: written = null } = isObject(operation) ? operation : {};
    const segments = String(path)
      .split("/")
      .slice(1)
      .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
    const isFixed = segments.length > 0 && !segments.includes("-") && !hasTemplate(String(path));
    if ((op !== "add" && op !== "replace") || !isFixed) {
      lose(patch, [index], FIXED);
      return [];
    }
    const at = segments.map(
      (step): Segment => (/^\d+$/.test(step) ? { kind: "index", index: Number(step) } : keySegment(step)),
    );
    return [...fieldsOf(written, at, [index, "value"], patch)];
  });
}

function parse(
  place: Tracked,
  translate: Translate,
  patched: Patched,
  fits: (value: JsonValue) => boolean,
): { value: JsonValue; patch: Patch } | undefined {
  const text = place.text();
  if (text === undefined) return undefined;
  const actions: string[] = [];
  const yaml = placeholdersFor(text, actions);
  // A list is no object, so it becomes a field of one.
  const isList = !fits({});
  const wrapped = isList ? `list:\n${yaml.replaceAll(/^/gm, "  ")}` : yaml;
  const { documents, mistakes } = readDocuments(
    [{ name: "", text: wrapped }],
    "not a YAML object; write the fields by hand",
    [PLAIN_TAG],
  );
  const [document] = documents;
  const value = isList ? document?.object["list"] : document?.object;
  if (mistakes.length > 0 || value === undefined || !fits(value)) {
    place.lose("the template is no YAML with templates in its values only; write the fields by hand");
    return undefined;
  }
  // A block of text begins in the line after its field.
  const placeOf = (steps: Steps) =>
    [place, (document?.positionOf(isList ? ["list", ...steps] : steps).line ?? 1) - (isList ? 1 : 0)] as const;
  return { value, patch: { ...patched, translate, actions, placeOf } };
}

function placeholdersFor(text: string, actions: string[]): string {
  let result = "";
  let rest = 0;
  for (const { index, length } of actionsIn(text)) {
    result += `${text.slice(rest, index)}${OPEN}${actions.length}${CLOSE}`;
    rest = index + length;
    actions.push(text.slice(index, rest));
  }
  return result + text.slice(rest);
}

const textOf = (text: string, actions: readonly string[]): string =>
  text.replaceAll(PLAIN, "").replaceAll(PLACEHOLDERS, (_, at: string) => actions[Number(at)] ?? "");

function withPlaceholders(value: JsonValue, actions: string[]): JsonValue {
  if (typeof value === "string") return placeholdersFor(value, actions);
  if (Array.isArray(value)) return value.map((each) => withPlaceholders(each, actions));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [placeholdersFor(key, actions), withPlaceholders(each, actions)]),
  );
}

function lose(patch: Patch, steps: Steps, message: string): void {
  const [place, below] = patch.placeOf(steps);
  place.lose(message, below);
}

function* fieldsOf(value: JsonValue, at: readonly Segment[], steps: Steps, patch: Patch): Generator<JsonObject> {
  if (isObject(value)) {
    if (Object.keys(value).length === 0 && at.length > 0) yield { path: pathOf(at), template: "{}", as: "json" };
    for (const [key, child] of Object.entries(value)) {
      if (DIRECTIVE.test(key) || hasTemplate(key))
        lose(patch, [...steps, key], "Inlay has no directives and no templates in keys; write this change by hand");
      else yield* fieldsOf(child, [...at, keySegment(key)], [...steps, key], patch);
    }
    return;
  }
  if (value === null)
    return lose(patch, steps, `the patch removes ${pathOf(at)}, which a binding can't do; remove it by hand`);
  if (Array.isArray(value) && patch.lists === "merge" && value.some(isObject)) {
    for (const [index, element] of value.entries()) yield* elementOf(element, at, [...steps, index], patch);
    return;
  }
  const path = pathOf(at);
  const [place, below] = patch.placeOf(steps);
  const written = orLost(place, path, () => valueAt(value, at, patch), below);
  if (written !== undefined) yield { path, ...written };
}

/** The fields of an element of a list that is merged by the names of its elements. */
function* elementOf(element: JsonValue, at: readonly Segment[], steps: Steps, patch: Patch): Generator<JsonObject> {
  const { name, ...rest } = isObject(element) ? element : {};
  if (typeof name !== "string" || hasTemplate(name))
    return lose(
      patch,
      steps,
      `the elements of ${pathOf(at)} have no name; write their fields by hand, as in list[port=80].name`,
    );
  const selected: Segment[] = [...at, { kind: "element", conditions: [{ key: "name", value: name }] }];
  if (Object.keys(rest).length === 0) return lose(patch, steps, "an element with a name alone; write it by hand");
  for (const field of fieldsOf(rest, selected, steps, patch)) yield { ...field, onMissingElement: "Append" };
}

const pathOf = (at: readonly Segment[]): string => String(new FieldPath(at));

function valueAt(value: JsonValue, at: readonly Segment[], patch: Patch): JsonObject {
  if (Array.isArray(value)) return { template: jsonTemplate(value, at, patch), as: "json" };
  if (typeof value === "string") {
    const parts = partsOf(value, at, patch);
    const [only, ...more] = parts;
    if (!value.startsWith(PLAIN)) return fieldValue(parts);
    // Without quotes, the JSON of a value is the value.
    if (typeof only === "object" && only.kind === "call" && only.helper === "json" && more.length === 0)
      return fieldValue(only.args);
    return { ...fieldValue(parts), ...(patch.isOpen && mayBeOther(parts) && { as: "yaml" }) };
  }
  const as = typeof value === "boolean" ? "boolean" : /^-?\d+$/.test(String(value)) ? "integer" : "number";
  return { template: String(value), as };
}

/** Whether YAML may read the text as something else than a text. The field of an object keeps its type. */
const mayBeOther = (parts: readonly Part[]): boolean =>
  parts.every((part) =>
    typeof part === "string"
      ? /^[\w.+-]*$/.test(part)
      : !(part.kind === "reference" && part.reference.isField === true),
  );

const partsOf = (text: string, at: readonly Segment[], { actions, translate }: Patch): Part[] =>
  translate(textOf(text, actions), at);

/** The list as JSON, in which each template stays within the quotes of its string, or is read as YAML if it had none. */
function jsonTemplate(value: JsonValue, at: readonly Segment[], patch: Patch): string {
  const parts = stringifyJson(value).split(/("(?:[^"\\]|\\.)*")/);
  return templateOf(
    parts.flatMap((part): Part[] => {
      if (!part.startsWith('"') || !hasTemplate(part)) return [part];
      const text = JSON.parse(part) as string;
      const inner = partsOf(text, at, patch);
      if (inner.some((each) => typeof each === "string" && hasTemplate(each))) throw new NotTranslated("a placeholder");
      if (text.startsWith(PLAIN) && mayBeOther(inner)) return [call("json", call("parse", concatenated(inner)))];
      return [
        '"',
        ...inner.map((each) => (typeof each === "string" ? JSON.stringify(each).slice(1, -1) : call("jsontext", each))),
        '"',
      ];
    }),
  );
}

function concatenated(parts: readonly Part[]): Expression {
  const all = parts.map((part): Expression => (typeof part === "string" ? { kind: "literal", value: part } : part));
  const [only, ...more] = all;
  return only !== undefined && more.length === 0 ? only : call("concat", ...all);
}
