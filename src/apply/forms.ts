/**
 * Compares a value that a binding writes with what the API server stores. The API server, admission policies and webhooks
 * may store a value in another form: `1Gi` for `1024Mi`, no field for an empty text, lower case, a default beside it. Pure.
 */
import type { TargetStatus } from "../api/binding.ts";
import { type FieldPath, isNameable, type Segment } from "../apimachinery/field-path.ts";
import { isObject, sameJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, KubeObject } from "../apimachinery/objects.ts";
import { isSameQuantity } from "../apimachinery/quantity.ts";
import type { PlannedField } from "../transform/plan-types.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { textOf } from "./elements.ts";
import { type FieldLocation, locateIn } from "./locate.ts";
import { heldPart, holds, isLeaf, nodesAt } from "./ownership.ts";

/**
 * `equal`: the stored value means the same, whatever was written. `similar`: the stored value may come from the written
 * one, but also from another: only what Inlay saw after its write shows which. `other`: it is another value.
 */
export type Form = "same" | "equal" | "similar" | "other";

const FORMS: readonly Form[] = ["same", "equal", "similar", "other"];

/** What a field of an object is that is stored and not wanted: the writer's own, or of others. */
type Rest = "ours" | "theirs";

interface Where {
  path: FieldPath;
  shape: TargetShape;
  rest: Rest;
  /** The API server treats an object or list around it as one value. */
  isInOne: boolean;
  /** The value was already stored before it was written: only a text that a rule makes of any other case counts as similar. */
  wasThere?: boolean;
}

type Written = Pick<PlannedField, "path" | "value">;

/** Whether the record says that Inlay wrote these values to this object, and saw them stored in similar forms. */
export const isAsLastWritten = (record: TargetStatus | undefined, { metadata: { uid } }: KubeObject): boolean =>
  record?.uid === uid && record.normalizedFor !== undefined;

/** Whether the object holds the value, so that there is nothing to write. */
export function isStored(
  live: KubeObject,
  field: Written,
  manager: string,
  shape: TargetShape,
  { isAsWritten, place }: { isAsWritten: boolean; place?: FieldLocation },
): boolean {
  const where = place ?? locateIn(field.path, shape, live);
  const form = formIn(live, field, manager, shape, where);
  if (form === "same") return true;
  if (where === undefined || form === "other" || (form === "similar" && !isAsWritten)) return false;
  // A client that changes a stored value owns it.
  return holds(live, manager, where.held);
}

/** The form in which the object holds the value of a field. The object may also contain defaults and fields of others. */
export function formIn(
  live: KubeObject,
  field: Written,
  manager: string,
  shape: TargetShape,
  place = locateIn(field.path, shape, live),
  wasThere = false,
): Form {
  if (place === undefined || place.missing) return "other";
  const { path, value } = field;
  const { held, within: isInOne } = place;
  const wanted = value.reveal();
  const where: Where = { path, shape, rest: "ours", isInOne, wasThere };
  const whole = compare(wanted, path.get(live) as JsonValue | undefined, where);
  if (whole === "same" || typeof wanted !== "object" || isInOne) return whole;
  const { own } = nodesAt(live, manager, held);
  if (own.length === 0) return whole;
  // Others may have fields in an object that the binding writes empty.
  if (isObject(wanted) && isEmpty(wanted) && !shape.isAtomic(path) && own.every(isLeaf)) return "equal";
  return best([whole, compare(wanted, heldPart(live, manager, held), where)]);
}

/** A path that names elements by their keys where the API server does: admission may add elements before them. */
export function pathByKeys(path: FieldPath, { held, within }: Pick<FieldLocation, "held" | "within">): FieldPath {
  return within ? held.with(...path.segments.slice(held.segments.length)) : held;
}

/** The form in which an object holds the value of a field that the binding has not written, whatever others have beside it. */
export function formBeside(live: KubeObject, field: Written, shape: TargetShape): Form {
  const { path, value } = field;
  const place = locateIn(path, shape, live);
  const where: Where = { path, shape, rest: "theirs", isInOne: place?.within ?? false };
  return compare(value.reveal(), path.get(live) as JsonValue | undefined, where);
}

/** There may be as many forms as an object has fields: more than a call can have arguments. */
const worst = (forms: readonly Form[]): Form => FORMS.findLast((form) => forms.includes(form)) ?? "same";
const best = (forms: readonly Form[]): Form => FORMS.find((form) => forms.includes(form)) ?? "other";

function compare(wanted: JsonValue | undefined, stored: JsonValue | undefined, where: Where): Form {
  if (sameJson(wanted, stored)) return "same";
  const { path, shape } = where;
  // The API server drops empty values, and sets defaults for missing ones.
  if (isEmpty(wanted) && isEmpty(stored)) return "equal";
  if ((wanted ?? "") === "" && isDefault(stored, where)) return "equal";
  if (isObject(wanted) && isObject(stored))
    return compareFields(wanted, stored, { ...where, isInOne: where.isInOne || shape.isAtomic(path) });
  if (Array.isArray(wanted) && Array.isArray(stored)) return compareElements(wanted, stored, where);
  const [written, kept] = [textIn(wanted), textIn(stored)];
  if (written === undefined || kept === undefined) return "other";
  if (isSameQuantity(written, kept)) return shape.isNormalizedQuantity(path) ? "equal" : "similar";
  if (isSameTime(written, kept)) return "similar";
  return (where.wasThere ? isNormalForm(written, kept) : folded(written) === folded(kept)) ? "similar" : "other";
}

/** A tenant can store any number of fields beside the wanted ones, so the path of one is only made where it matters. */
function compareFields(wanted: JsonObject, stored: JsonObject, where: Where): Form {
  const own = (object: JsonObject, key: string) => (Object.hasOwn(object, key) ? object[key] : undefined);
  const at = (key: string) => below(where, { kind: "key", key });
  let form = worst(
    Object.keys(wanted).map((key): Form => {
      const [ours, theirs] = [own(wanted, key), own(stored, key)];
      if (!isNameable(key)) return sameJson(ours, theirs) ? "same" : "other";
      return compare(ours, theirs, at(key));
    }),
  );
  const isRest = (key: string) => own(wanted, key) === undefined && own(stored, key) !== undefined;
  if (!where.isInOne) return where.rest === "theirs" || !Object.keys(stored).some(isRest) ? form : "other";
  // In an object with one owner, the API server or a policy has added the rest.
  for (const key of Object.keys(stored)) {
    if (form === "similar" || form === "other") break;
    if (!isRest(key)) continue;
    const theirs = own(stored, key);
    const isAdded = isEmpty(theirs) || (isNameable(key) && isDefault(theirs, at(key)));
    form = worst([form, isAdded ? "equal" : "similar"]);
  }
  return form;
}

function compareElements(wanted: readonly JsonValue[], stored: readonly JsonValue[], where: Where): Form {
  const { path, shape, rest, isInOne } = where;
  const type = isInOne ? { kind: "atomic" as const } : shape.listAt(path);
  const isBeside = type.kind !== "atomic" && rest === "theirs";
  if (isBeside ? wanted.length > stored.length : wanted.length !== stored.length) return "other";
  const element = (index: number): Where => below(where, { kind: "index", index }, type.kind === "atomic");
  if (type.kind === "atomic") return worst(wanted.map((each, index) => compare(each, stored[index], element(index))));
  const keys = type.kind === "map" ? type.keys : [];
  const defaultOf = (key: string) => shape.defaultAt(element(0).path.with({ kind: "key", key }));
  /** The element with all its keys. A missing key has its default. */
  const whole = (each: JsonValue): JsonValue => {
    if (!isObject(each)) return each;
    const missing = keys.flatMap((key): [string, JsonValue][] => {
      const value = Object.hasOwn(each, key) ? undefined : defaultOf(key);
      return value === undefined ? [] : [[key, value]];
    });
    return missing.length === 0 ? each : { ...each, ...Object.fromEntries(missing) };
  };
  const idOf = (each: JsonValue): string =>
    type.kind === "map" && isObject(each) ? keys.map((key) => textOf(each[key])).join() : textOf(each);
  const all = stored.map(whole);
  const places = new Map(all.map((each, index) => [idOf(each), index]));
  const at =
    places.size < all.length ? (_: JsonValue, index: number) => index : (each: JsonValue) => places.get(idOf(each));
  return worst(
    wanted.map((each, position): Form => {
      const index = at(whole(each), position);
      return index === undefined ? "other" : worst(["equal", compare(whole(each), all[index], element(index))]);
    }),
  );
}

const below = (where: Where, segment: Segment, isInOne = where.isInOne): Where => ({
  ...where,
  path: where.path.with(segment),
  isInOne,
});

/** Whether the API server may store nothing in place of the value. */
function isEmpty(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null || value === "" || value === false || value === 0) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.values(value).every(isEmpty);
}

const isDefault = (stored: JsonValue | undefined, { path, shape }: Where): boolean =>
  stored !== undefined && sameJson(shape.defaultAt(path), stored);

/** A single value as a text; undefined for anything else. */
const textIn = (value: JsonValue | undefined): string | undefined =>
  value === undefined || value === null || typeof value === "object" ? undefined : String(value);

const dense = (text: string): string => text.replaceAll(/\s/g, "");
const folded = (text: string): string => dense(text).toLowerCase();

/** Whether the stored text is the written one in lower or upper case, or with less white space. */
const isNormalForm = (written: string, kept: string): boolean =>
  kept.length <= written.length &&
  [written, written.toLowerCase(), written.toUpperCase()].some((each) => dense(each) === dense(kept));

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;

const isSameTime = (a: string, b: string): boolean => TIME.test(a) && TIME.test(b) && Date.parse(a) === Date.parse(b);
