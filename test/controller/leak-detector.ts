/** Remembers all secret values that tests create, and finds them in output, in every encoding in which they could occur. */
import { createHash, randomBytes } from "node:crypto";

interface Needle {
  bytes: Buffer;
  value: string;
}

const SHORTEST = 8;

/** By their first four bytes, so that a text is searched once for all values. */
const needles = new Map<number, Needle[]>();
/**
 * Possible beginnings of a value, by a hash of six bytes. It excludes almost all places, because an audit log has more than 100
 * MB.
 */
const beginnings = new Uint8Array(1 << 24);

/** Creates a new value that occurs nowhere else. The label describes it; the search looks for its random part. */
export function secretText(label: string): string {
  const random = randomBytes(12).toString("hex");
  const whole = `${label}-${random}`;
  remember(random, [...spellings(random), ...digests(whole)]);
  return whole;
}

/** Remembers a value that was created elsewhere. */
export function registerSecret(value: string): string {
  if (value.length < SHORTEST) throw new Error(`a value of ${value.length} characters may occur anywhere`);
  remember(value, [...spellings(value), ...digests(value)]);
  return value;
}

/** Remembers bytes that are not text, such as a key. Messages show them in hex. */
export function registerSecretBytes(bytes: Uint8Array): void {
  if (bytes.length < SHORTEST) throw new Error(`${bytes.length} bytes may occur anywhere`);
  const hex = Buffer.from(bytes).toString("hex");
  remember(hex, [...encodings(bytes), hex.toUpperCase(), [...bytes].join(","), ...digests(bytes)]);
}

/** The values that a text contains, in any encoding. */
export function foundIn(text: string | Buffer): string[] {
  const bytes = Buffer.from(text);
  const found = new Set<string>();
  for (let at = 0; at + SHORTEST <= bytes.length; at++) {
    if (beginnings[hashAt(bytes, at)] === 0) continue;
    for (const needle of needles.get(bytes.readUInt32LE(at)) ?? []) {
      if (bytes.subarray(at, at + needle.bytes.length).equals(needle.bytes)) found.add(needle.value);
    }
  }
  return [...found];
}

function hashAt(bytes: Buffer, at: number): number {
  const four =
    (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24);
  const two = (bytes[at + 4] ?? 0) | ((bytes[at + 5] ?? 0) << 8);
  return (Math.imul(four, 0x9e3779b1) ^ Math.imul(two, 0x85ebca6b)) >>> 8;
}

function remember(value: string, texts: string[]): void {
  for (const text of new Set(texts)) {
    const bytes = Buffer.from(text);
    const prefix = bytes.readUInt32LE(0);
    beginnings[hashAt(bytes, 0)] = 1;
    const known = needles.get(prefix) ?? [];
    needles.set(prefix, known);
    known.push({ bytes, value });
  }
}

/** Plain, in JSON, in JSON within JSON, in a URL, in hex, and in base64. */
function spellings(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1);
  return [value, json, JSON.stringify(json).slice(1, -1), encodeURIComponent(value), ...encodings(Buffer.from(value))];
}

/** In hex and in base64. */
function encodings(value: Uint8Array): string[] {
  const base64 = [0, 1, 2].map((offset) => base64At(value, offset));
  return [
    Buffer.from(value).toString("hex"),
    ...base64,
    ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
  ];
}

/**
 * The part of the base64 encoding that does not depend on the text around the value, at `offset` bytes after a multiple of three.
 */
function base64At(value: Uint8Array, offset: number): string {
  const bytes = Buffer.concat([Buffer.alloc(offset), value]);
  const wholeSextets = Math.floor((bytes.length * 8) / 6);
  return bytes.toString("base64").slice(Math.ceil((offset * 8) / 6), wholeSextets);
}

/** A hash without a key would allow users to test guesses of a value. */
function digests(value: string | Uint8Array): string[] {
  return ["md5", "sha1", "sha256", "sha512"].flatMap((algorithm) => {
    const digest = createHash(algorithm).update(value).digest();
    return [digest.toString("hex"), digest.toString("base64").replace(/=+$/, ""), digest.toString("base64url")];
  });
}
