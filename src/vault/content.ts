/** Converts answers of a KV secrets engine to the content of sources, with versions that change with the content. Pure. */
import { createHmac, randomBytes } from "node:crypto";
import { isObject, isTooDeep } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import type { VaultAnswer, VaultContent } from "./types.ts";

/** Random for each process, so that a version reveals nothing about the content. */
const KEY = randomBytes(32);

const { rawJSON } = JSON as unknown as { rawJSON(text: string): JsonValue };

/** The answer for a path without content. */
export const ABSENT: VaultAnswer = { version: "absent", content: undefined };

/** Facts about one version of a path, which are in the answers with data and with metadata alike. */
interface VersionFacts {
  readonly version: number;
  readonly createdTime: string;
  /** Empty for a version without a planned deletion. */
  readonly deletionTime: string;
  readonly isDestroyed: boolean;
  readonly custom: Readonly<Record<string, string>>;
  readonly isGone: boolean;
}

/** Version numbers start again after a path was removed with its metadata, so the time is included. */
export function versionText({ version, custom, isGone, ...facts }: VersionFacts): string {
  const { createdTime, deletionTime, isDestroyed } = facts;
  const state = [isDestroyed ? "destroyed" : "kept", isGone ? "gone" : "there"];
  return [version, createdTime, deletionTime, digestOf(Object.entries(custom).sort()), ...state].join(" ");
}

/** The answer with these keys. Without a version, a keyed hash of the content is the version. */
export function answerOf(
  data: ReadonlyMap<string, string>,
  custom: Readonly<Record<string, string>>,
  version = digestOf([[...data], Object.entries(custom).sort()]),
): VaultAnswer {
  const values = new Map([...data].map(([key, text]) => [key, new SecretValue<Uint8Array>(Buffer.from(text))]));
  const content: VaultContent = { data: values, custom: new SecretValue(custom) };
  return { version, content };
}

/** Custom metadata, which is null in Vault's answer if there is none. */
export function customOf(value: unknown): Record<string, string> {
  if (!isObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((each): each is [string, string] => typeof each[1] === "string"),
  );
}

/**
 * The values of an object within an answer: a string as it is, any other value as JSON with numbers as Vault spells them. `pick` returns
 * the object. Throws Problem for an answer that nests too deep.
 */
export function textsOf(
  answer: SecretValue<string>,
  pick: (answer: JsonObject) => JsonValue | undefined,
  place: string,
): Map<string, string> {
  const text = answer.reveal();
  if (isTooDeep(text)) {
    throw new Problem("TooDeep", { at: [place], what: `a value has too many levels; nest fewer objects and lists` });
  }
  const parsed: JsonValue = JSON.parse(text, spelled as (key: string, value: unknown) => unknown);
  const found = isObject(parsed) ? pick(parsed) : undefined;
  const entries = isObject(found) ? Object.entries(found) : [];
  return new Map(entries.map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(value)]));
}

/** Like `textsOf`, for a parsed object. */
export function fieldsOf(object: JsonObject, names: readonly string[]): Map<string, string> {
  const entries = names.flatMap((name): [string, string][] => {
    const value = object[name];
    if (value === undefined || value === null) return [];
    return [[name, typeof value === "string" ? value : JSON.stringify(value)]];
  });
  return new Map(entries);
}

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

function digestOf(value: unknown): string {
  return createHmac("sha256", KEY).update(JSON.stringify(value)).digest("base64url");
}

function spelled(_: string, value: unknown, { source }: { source?: string }): unknown {
  return typeof value === "number" && source !== undefined ? rawJSON(source) : value;
}
