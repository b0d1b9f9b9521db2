/** Reads the value that a path in a template names. */
import { step } from "../apimachinery/field-path.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import { MissingValue, Problem } from "../apimachinery/problem.ts";
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

/** A reference and where it stands, as `line:column`, both from 1. */
export interface Slot extends Reference {
  readonly at: string;
}

/** The slot's source. Throws Problem("InvalidBinding") if there is none, and InvalidTemplate for a path not its kind's. */
export function sourceOf(slot: Slot, sources: Sources): LiveSource {
  const source = sources.get(slot.source);
  if (source === undefined) throw new Problem("InvalidBinding", unknownSource(slot, sources.keys()));
  if (source.kind === "data" && slot.path.length > 1) {
    const instead = `{{${spell([slot.source, slot.path.join(".")])}}}`;
    const message = `template ${slot.at}: ${source.description} has keys, and nothing below them; a key with dots stands in brackets: ${instead}`;
    throw new Problem("InvalidTemplate", message);
  }
  return source;
}

export function isOfSecret(slot: Slot, sources: Sources): boolean {
  const source = sourceOf(slot, sources);
  return source.kind === "data" && source.isSecret;
}

/** The value: a key's text, or what a field holds. Throws MissingValue and Problem("NotUtf8"). */
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

/** What a key holds as JSON or YAML, or undefined for a field of an object. */
export function documentOf(slot: Slot, sources: Sources, budget: Budget): JsonValue | undefined {
  const source = present(sourceOf(slot, sources));
  return source.kind === "data" ? readDocument(source, keyOf(slot), budget).reveal() : undefined;
}

/** What `if` asks: whether the value is there and not empty, 0 or false. Throws MissingValue for a source to wait for. */
export function isTrue(slot: Slot, sources: Sources): boolean {
  const source = sourceOf(slot, sources);
  if (source.kind === "absent" && source.policy.optional) return false;
  const live = present(source);
  if (live.kind === "data") return (live.data.get(keyOf(slot))?.reveal().length ?? 0) > 0;
  return isTruthy(walk(slot, live));
}

export const isTruthy = (value: unknown): boolean => (Array.isArray(value) ? value.length > 0 : Boolean(value));

/** Whether a value that is missing may be stood in for: its source is there, or need not be. */
export const mayStandIn = (error: unknown): boolean =>
  error instanceof MissingValue && (error.reason === "KeyNotFound" || error.policy.optional);

/** The message for a reference to a source that the binding doesn't have; with a hint if its name has dots. */
export function unknownSource(reference: Reference, names: Iterable<string>): string {
  const known = [...names];
  const text = [reference.source, ...reference.path].join(".");
  const dotted = known.find((name) => text.startsWith(`${name}.`));
  const hint = dotted === undefined ? "" : `; write {{${spell([dotted, text.slice(dotted.length + 1)])}}}`;
  return `no source is called ${reference.source}; there is ${known.join(", ")}${hint}`;
}

/** A path as a template writes it, brackets where they are needed. */
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
