/** Reads the file of values that `inlay render` takes for those of Vault. What is wrong in it is reported by its line, without values. Pure. */
import { isObject, stringifyJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { suggestNames } from "../apimachinery/suggest-names.ts";
import type { KvPlace } from "../vault/types.ts";
import { type Mistake, readDocuments, type TextFile } from "./documents.ts";

const PARTS = ["data", "metadata", "health"] as const;
export type VaultPart = (typeof PARTS)[number];

/** What Vault would answer. */
export interface VaultValues {
  /** The fields under one key of a part of the file. Undefined if it has no such key. */
  fieldsOf(part: VaultPart, key: string): JsonObject | undefined;
  /** What to write into which file for a key that it does not have. */
  adviceFor(part: VaultPart, key: string): string;
}

/** How the file calls a path. */
export const keyOf = ({ mount, path }: KvPlace): string => `${mount}/${path}`;
/** How the file calls a server. */
export const serverKey = (address: string): string => address.replace(/\/$/, "");
/** As Vault's answer has it for a field: a text as it is, anything else as its JSON. */
export const textOf = (value: JsonValue): string => (typeof value === "string" ? value : stringifyJson(value));

const EXPECTED = "this is no mapping; one has data, metadata and health";
const PLACE = /^[^/*?{}]+(\/[^/*?{}]+)+$/;
const SERVER = /^https?:\/\/[^/\s]+\/?$/;
const NO_PART = new Set([".", "..", "+"]);
const EXAMPLES: Readonly<Record<VaultPart, string>> = {
  data: "{KEY: VALUE}",
  metadata: "{current_version: 1, updated_time: TIME, custom_metadata: {}}",
  health: "{initialized: true, sealed: false, active: true}",
};

/** Several files, as of a folder, count as one. Without any, no value is known. */
export function readVaultValues(files: readonly TextFile[]): { values: VaultValues; mistakes: Mistake[] } {
  const { documents, mistakes } = readDocuments(files, EXPECTED);
  const known = new Map<string, { fields: JsonObject; where: string }>();
  for (const document of documents)
    for (const [part, entries] of Object.entries(document.object)) {
      const wrong = (message: string, ...steps: string[]) =>
        mistakes.push({ file: document.file, line: document.lineOf([part, ...steps]), message });
      if (!isPart(part)) wrong(`${part}: there is no such field here; ${suggestNames("the file", part, PARTS)}`);
      else if (!isObject(entries)) wrong(`${part}: it is no mapping; write ${lineFor(part, "KEY")}`);
      else
        for (const [key, fields] of Object.entries(entries)) {
          const id = idOf(part, part === "health" ? serverKey(key) : key);
          const other = known.get(id)?.where;
          if (!isKey(part, key)) wrong(`${part}["${key}"]: ${ruleFor(part)}`, key);
          else if (!isObject(fields))
            wrong(`${part}["${key}"]: it is no mapping of keys to values; write ${EXAMPLES[part]}`, key);
          else if (other !== undefined) wrong(`${part}["${key}"]: it is in ${other} too; leave one of them out`, key);
          else known.set(id, { fields, where: `${document.file}:${document.lineOf([part, key])}` });
        }
    }
  const [file] = files;
  const where = file === undefined ? "a file, and name it by --vault-values" : file.name;
  return {
    values: {
      fieldsOf: (part, key) => known.get(idOf(part, key))?.fields,
      adviceFor: (part, key) => `write into ${where}: ${lineFor(part, key)}`,
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
    ? "this is no address of a server; write one such as https://vault.vault.svc:8200"
    : "this is no path in Vault; write mount and path, such as kv/registry/s3";
