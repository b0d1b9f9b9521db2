/**
 * The values that transforms compute with, as in Go: whole numbers and fractions have different types. Converts them from and to JSON,
 * where whole numbers are int64 again.
 */
import { integerOf, isInt64 } from "../../../apimachinery/json.ts";
import type { JsonValue } from "../../../apimachinery/objects.ts";
import { Problem } from "../../../apimachinery/problem.ts";

/**
 * A bigint is an int64, and a number is a float64. In a string, a lone surrogate from U+DC80 to U+DCFF is a byte that is not UTF-8, because
 * base64 may contain any bytes and Go keeps them until it writes JSON.
 */
export type GoValue = string | bigint | number | boolean | null | GoValue[] | GoObject;
type GoObject = { [key: string]: GoValue };

/** The API server accepts no object that is much larger. */
const MAX_BYTES = 1024 * 1024;
const [FIRST_RAW, LAST_RAW, RAW] = [0xdc80, 0xdcff, 0xdc00];

export function fromJson(value: JsonValue): GoValue {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value === "bigint") return isInt64(value) ? value : Number(value);
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(fromJson);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, fromJson(each)]));
}

/** Throws Problem("InvalidValue") for infinity and NaN, which JSON does not have. */
export function toJson(value: GoValue): JsonValue {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value === "bigint") return integerOf(value);
  if (typeof value === "number") return numberOf(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(toJson);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, toJson(each)]));
}

/** Throws Problem("InvalidValue") for infinity and NaN. */
export function finite(value: number): number {
  if (!Number.isFinite(value)) throw invalid("the number is infinite or not a number, which JSON can't hold");
  return value;
}

function numberOf(value: number): JsonValue {
  if (!Number.isInteger(finite(value))) return value;
  const whole = BigInt(value);
  return isInt64(whole) ? integerOf(whole) : value;
}

/** The names of the types of single values in Go. */
export const GO_TYPES = { string: "string", bigint: "int64", number: "float64", boolean: "bool" } as const;

/** The type of a value in messages. */
export function typeOf(value: GoValue): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  const names = {
    string: "a string",
    bigint: "a whole number",
    number: "a number of the type float64",
    boolean: "a boolean",
  };
  return (names as Record<string, string>)[typeof value] ?? "an object";
}

/** The order of keys in Go: by their bytes. */
export function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

export function bytesOf(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text);
  const parts = text.split(/([\udc80-\udcff])/u);
  return Buffer.concat(parts.map((part, n) => (n % 2 === 0 ? Buffer.from(part) : Buffer.of(part.charCodeAt(0) - RAW))));
}

/** Keeps each byte that is not UTF-8. */
export function textOf(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = buffer.toString();
  // The bytes themselves may contain a replacement character.
  if (!text.includes("\ufffd") || Buffer.from(text).equals(buffer)) return text;
  const parts: string[] = [];
  let from = 0;
  for (let at = 0; at < bytes.length; ) {
    const length = lengthOfCharacter(bytes, at);
    if (length === 0) {
      parts.push(buffer.toString("utf8", from, at), String.fromCharCode(RAW + (bytes[at] as number)));
      from = at + 1;
    }
    at += length || 1;
  }
  return parts.join("") + buffer.toString("utf8", from);
}

/** The number of bytes of the character at an index; 0 if no character begins there. */
function lengthOfCharacter(bytes: Uint8Array, at: number): number {
  const first = bytes[at] as number;
  if (first < 0x80) return 1;
  const length = first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  const second = bytes[at + 1] ?? 0;
  if ((first === 0xe0 && second < 0xa0) || (first === 0xed && second > 0x9f)) return 0;
  if ((first === 0xf0 && second < 0x90) || (first === 0xf4 && second > 0x8f)) return 0;
  for (let n = 1; n < length; n++) if (((bytes[at + n] ?? 0) & 0xc0) !== 0x80) return 0;
  return length;
}

/** Whether a character represents a byte that is not UTF-8. */
export const isRawByte = (codePoint: number): boolean => codePoint >= FIRST_RAW && codePoint <= LAST_RAW;

/** Throws Problem("InvalidValue") for a string that is too long. */
export function bounded(text: string): string {
  if (text.length * 3 > MAX_BYTES && Buffer.byteLength(text) > MAX_BYTES) throw tooLong();
  return text;
}

/** Builds a string from parts, up to the maximum length. */
export class TextBuilder {
  readonly #parts: string[] = [];
  #length = 0;

  add(part: string): void {
    this.#length += part.length;
    if (this.#length > MAX_BYTES) throw tooLong();
    this.#parts.push(part);
  }

  toString(): string {
    return bounded(this.#parts.join(""));
  }
}

/** Checks the length of a string before it is built. */
export function assertShort(characters: number): void {
  if (characters > MAX_BYTES) throw tooLong();
}

const tooLong = () => invalid("the string would be larger than 1 MiB");

export const invalid = (rule: string): Problem => new Problem("InvalidValue", rule);
