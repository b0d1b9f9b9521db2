/** The segments of a path to a field, and their text. */
import { quoted } from "./objects.ts";

/**
 * One step from an object or a list to a value in it. `key`: a field of an object. `index`: a position in a list, from
 * 0, as the list is now. `element`: the one element of a list that matches all conditions, which are sorted by key.
 */
export type Segment =
  | { readonly kind: "key"; readonly key: string }
  | { readonly kind: "index"; readonly index: number }
  | { readonly kind: "element"; readonly conditions: readonly ElementCondition[] };

/** A field of an element and its value as text: `80` also matches the number 80. */
export interface ElementCondition {
  readonly key: string;
  readonly value: string;
}

const isBare = (text: string): boolean => /^[A-Za-z0-9_-]+$/.test(text);
const isBareValue = (text: string): boolean => /^[^\s"'\\[\]=,]+$/.test(text);

/** Quotes keys and values only where necessary. */
export function pathText(segments: readonly Segment[]): string {
  return segments.map(segmentText).join("");
}

function segmentText(segment: Segment, position: number): string {
  if (segment.kind === "index") return `[${segment.index}]`;
  if (segment.kind === "element") return `[${segment.conditions.map(conditionText).join(",")}]`;
  const key = isBare(segment.key) ? segment.key : quoted(segment.key);
  return key !== segment.key ? `[${key}]` : position === 0 ? key : `.${key}`;
}

function conditionText({ key, value }: ElementCondition): string {
  const [left, right] = [isBare(key) ? key : quoted(key), isBareValue(value) ? value : quoted(value)];
  return `${left}=${right}`;
}
