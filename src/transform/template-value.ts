/** Reads the value of a path in a template. */
import { step } from "../apimachinery/field-path.ts";
import { type JsonValue, plainPath, plainWord } from "../apimachinery/objects.ts";
import { MissingValue, Problem } from "../apimachinery/problem.ts";
import { similarName } from "../apimachinery/suggest-names.ts";
import type { Budget } from "./budget.ts";
import { readDocument } from "./document.ts";
import type { LiveSource } from "./live-source.ts";
import { type ObjectSource, present, readBytes, readText, there } from "./read.ts";

export type Sources = ReadonlyMap<string, LiveSource>;

/** A value that a template names: `{{bucket.[tls.crt]}}` is `{ source: "bucket", path: ["tls.crt"] }`. */
export interface Reference {
  readonly source: string;
  readonly path: readonly string[];
}

/** A reference with its position as `line:column`, both from 1. */
export interface Slot extends Reference {
  readonly at: string;
}

/**
 * The slot's source. Throws Problem: InvalidBinding if it does not exist, InvalidTemplate if its kind has no such path.
 */
export function sourceOf(slot: Slot, sources: Sources): LiveSource {
  const source = sources.get(slot.source);
  if (source === undefined) throw new Problem("InvalidBinding", unknownSource(slot, sources.keys()));
  if (source.kind === "data" && slot.path.length > 1) {
    const instead = plainPath(`{{${spell([slot.source, slot.path.join(".")])}}}`);
    const message = `template ${slot.at}: the keys of ${source.description} have no fields; write a key with dots in brackets: ${instead}`;
    throw new Problem("InvalidTemplate", message);
  }
  return source;
}

export function isOfSecret(slot: Slot, sources: Sources): boolean {
  const source = sourceOf(slot, sources);
  return source.kind === "data" && source.isSecret;
}

/** The value: the text of a key, or the value of a field. Throws MissingValue and Problem("NotUtf8"). */
export function readSlot(slot: Slot, sources: Sources): JsonValue {
  const source = present(sourceOf(slot, sources));
  if (source.kind === "data") return readText(source, keyOf(slot)).reveal();
  return there(walk(slot, source), source, `field ${slot.path.join(".")}`);
}

/** The bytes of a key, or undefined for a field of an object. */
export function bytesOf(slot: Slot, sources: Sources): Uint8Array | undefined {
  const source = present(sourceOf(slot, sources));
  return source.kind === "data" ? readBytes(source, keyOf(slot)).reveal() : undefined;
}

/** The JSON or YAML of a key; undefined for a field of an object. */
export function documentOf(slot: Slot, sources: Sources, budget: Budget): JsonValue | undefined {
  const source = present(sourceOf(slot, sources));
  return source.kind === "data" ? readDocument(source, keyOf(slot), budget).reveal() : undefined;
}

/**
 * The condition of `if`: the value exists and is not empty, 0 or false. Throws MissingValue if the source is missing
 * and not optional.
 */
export function isTrue(slot: Slot, sources: Sources): boolean {
  const source = sourceOf(slot, sources);
  if (source.kind === "absent" && source.policy.optional) return false;
  const live = present(source);
  if (live.kind === "data") return (live.data.get(keyOf(slot))?.reveal().length ?? 0) > 0;
  return isTruthy(walk(slot, live));
}

export const isTruthy = (value: unknown): boolean => (Array.isArray(value) ? value.length > 0 : Boolean(value));

/** Whether `default` may replace a missing value: if its source exists or is optional. */
export const mayUseDefault = (error: unknown): boolean =>
  error instanceof MissingValue && (error.reason === "KeyNotFound" || error.policy.optional);

/** The message for a reference to an unknown source, with the sources that exist and the reference that is probably meant. */
export function unknownSource(reference: Reference, names: Iterable<string>): string {
  const known = [...names];
  const { source, path } = reference;
  const text = [source, ...path].join(".");
  const dotted = known.find((name) => text.startsWith(`${name}.`));
  const [first, ...rest] = path;
  const nearest = similarName(source, known);
  const hint =
    dotted !== undefined
      ? ` Write {{${spell([dotted, text.slice(dotted.length + 1)])}}}.`
      : first !== undefined && rest.length > 0 && known.includes(first)
        ? ` Write {{${spell(path)}}}.`
        : nearest !== undefined
          ? ` Did you mean ${nearest}?`
          : "";
  return `there is no source ${plainWord(source)}.${hint} The sources of the binding are ${known.join(", ")}; correct the name, or add the source to spec.sources`;
}

/** A path in a template's notation, with brackets where needed. */
export function spell(parts: readonly string[]): string {
  return parts.map((part) => (/^[A-Za-z_][\w-]*$/.test(part) ? part : `[${part}]`)).join(".");
}

const keyOf = (slot: Slot): string => slot.path[0] as string;

function walk(slot: Slot, source: ObjectSource): unknown {
  return slot.path.reduce<unknown>((from, part) => {
    const index = Array.isArray(from) && /^\d+$/.test(part);
    return step(from, index ? { kind: "index", index: Number(part) } : { kind: "key", key: part });
  }, source.object.reveal());
}
