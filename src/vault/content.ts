/** Answers of a KV secrets engine come in, what sources read of them goes out, with versions that tell whether it changed. Pure. */
import { createHmac, randomBytes } from "node:crypto";
import { isObject, isTooDeep } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import type { VaultAnswer, VaultContent } from "./types.ts";

/** Of this process alone: a version says nothing about the content to those who don't have it. */
const KEY = randomBytes(32);

const { rawJSON } = JSON as unknown as { rawJSON(text: string): JsonValue };

/** Nothing is at the path. */
export const ABSENT: VaultAnswer = { version: "absent", content: undefined };

/** What decides about one version of a path. Both the answer with the data and the one with the metadata have it. */
export interface VersionFacts {
  readonly version: number;
  readonly createdTime: string;
  /** Empty for a version that nothing deletes. */
  readonly deletionTime: string;
  readonly isDestroyed: boolean;
  readonly custom: Readonly<Record<string, string>>;
  readonly isGone: boolean;
}

/** Version numbers start again after a path was removed with its metadata, so the time is a part. */
export function versionText({ version, custom, isGone, ...facts }: VersionFacts): string {
  const { createdTime, deletionTime, isDestroyed } = facts;
  const state = [isDestroyed ? "destroyed" : "kept", isGone ? "gone" : "there"];
  return [version, createdTime, deletionTime, digestOf(Object.entries(custom).sort()), ...state].join(" ");
}

/** The answer with these keys. Without a version, it is made of the content. */
export function answerOf(
  data: ReadonlyMap<string, string>,
  custom: Readonly<Record<string, string>>,
  version = digestOf([[...data], Object.entries(custom).sort()]),
): VaultAnswer {
  const values = new Map([...data].map(([key, text]) => [key, new SecretValue<Uint8Array>(Buffer.from(text))]));
  const content: VaultContent = { data: values, custom: new SecretValue(custom) };
  return { version, content };
}

/** Custom metadata; Vault has null where there is none. */
export function customOf(value: unknown): Record<string, string> {
  if (!isObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((each): each is [string, string] => typeof each[1] === "string"),
  );
}

/**
 * The values of an object within an answer: text as it is, anything else as JSON with numbers as Vault spells them. `pick` finds the
 * object. Throws Problem for an answer that nests too deep to be read whole.
 */
export function textsOf(
  answer: SecretValue<string>,
  pick: (answer: JsonObject) => JsonValue | undefined,
  place: string,
): Map<string, string> {
  const text = answer.reveal();
  if (isTooDeep(text)) {
    throw new Problem(
      "TooDeep",
      `${place}: a value has too many levels to be read; nest objects and lists less deeply`,
    );
  }
  const parsed: JsonValue = JSON.parse(text, spelled as (key: string, value: unknown) => unknown);
  const found = isObject(parsed) ? pick(parsed) : undefined;
  const entries = isObject(found) ? Object.entries(found) : [];
  return new Map(entries.map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(value)]));
}

/** As `textsOf`, of an object that was parsed. */
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
