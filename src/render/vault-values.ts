/** Reads the file of values that replaces Vault in `inlay render`. Mistakes are reported by line, without values. Pure. */
import { isObject, stringifyJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { suggestNames } from "../apimachinery/suggest-names.ts";
import type { KvPlace } from "../vault/types.ts";
import { type Mistake, readDocuments, type TextFile } from "./documents.ts";

const PARTS = ["data", "metadata", "health"] as const;
export type VaultPart = (typeof PARTS)[number];

/** The values in place of Vault's answers. */
export interface VaultValues {
  /** The fields under a key in a part of the file. Undefined if the key is missing. */
  fieldsOf(part: VaultPart, key: string): JsonObject | undefined;
  /** What to add to which file for a missing key. */
  adviceFor(part: VaultPart, key: string): string;
}

/** The key of a path in the file. */
export const keyOf = ({ mount, path }: KvPlace): string => `${mount}/${path}`;
/** The key of a server in the file. */
export const serverKey = (address: string): string => address.replace(/\/$/, "");
/** A field as in Vault's answer: a string as it is, any other value as its JSON. */
export const textOf = (value: JsonValue): string => (typeof value === "string" ? value : stringifyJson(value));

const EXPECTED = "must be a mapping with data, metadata and health";
const PLACE = /^[^/*?{}]+(\/[^/*?{}]+)+$/;
const SERVER = /^https?:\/\/[^/\s]+\/?$/;
const NO_PART = new Set([".", "..", "+"]);
const EXAMPLES: Readonly<Record<VaultPart, string>> = {
  data: "{KEY: VALUE}",
  metadata: "{current_version: 1, updated_time: TIME, custom_metadata: {}}",
  health: "{initialized: true, sealed: false, active: true}",
};

/** Several files, such as a folder, count as one. Without files, no value is known. */
export function readVaultValues(files: readonly TextFile[]): { values: VaultValues; mistakes: Mistake[] } {
  const { documents, mistakes } = readDocuments(files, EXPECTED);
  const known = new Map<string, { fields: JsonObject; where: string }>();
  for (const document of documents)
    for (const [part, entries] of Object.entries(document.object)) {
      const wrong = (message: string, ...steps: string[]) =>
        mistakes.push({
          file: document.file,
          ...document.positionOf([part, ...steps]),
          reason: "InvalidFile",
          message,
        });
      if (!isPart(part)) wrong(`${part}: unknown field; ${suggestNames("the file", part, PARTS)}`);
      else if (!isObject(entries)) wrong(`${part}: must be a mapping; write ${lineFor(part, "KEY")}`);
      else
        for (const [key, fields] of Object.entries(entries)) {
          const id = idOf(part, part === "health" ? serverKey(key) : key);
          const other = known.get(id)?.where;
          if (!isKey(part, key)) wrong(`${part}["${key}"]: ${ruleFor(part)}`, key);
          else if (!isObject(fields))
            wrong(`${part}["${key}"]: must be a mapping of keys to values; write ${EXAMPLES[part]}`, key);
          else if (other !== undefined) wrong(`${part}["${key}"]: is in ${other} too; remove one of them`, key);
          else known.set(id, { fields, where: `${document.file}:${document.positionOf([part, key]).line}` });
        }
    }
  const [file] = files;
  const where = file === undefined ? "a file that you pass with --vault-values" : file.name;
  return {
    values: {
      fieldsOf: (part, key) => known.get(idOf(part, key))?.fields,
      adviceFor: (part, key) => `add to ${where}: ${lineFor(part, key)}`,
    },
    mistakes,
  };
}

const isPart = (text: string): text is VaultPart => PARTS.some((each) => each === text);
const idOf = (part: VaultPart, key: string): string => `${part} ${key}`;
const lineFor = (part: VaultPart, key: string): string => `${part}: {${JSON.stringify(key)}: ${EXAMPLES[part]}}`;

const isKey = (part: VaultPart, key: string): boolean =>
  part === "health" ? SERVER.test(key) : PLACE.test(key) && !key.split("/").some((each) => NO_PART.has(each));

const ruleFor = (part: VaultPart): string =>
  part === "health"
    ? "must be the address of a server, such as https://vault.vault.svc:8200"
    : "must be mount and path in Vault, such as kv/registry/s3";
