/** Reads the file of values that replaces stores in `inlay render`. Mistakes are reported by line, without values. Pure. */
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { suggestNames } from "../apimachinery/suggest-names.ts";
import { SOURCE_KINDS } from "../sources/registry.ts";
import type { FilePart } from "../sources/source.ts";
import { type Mistake, readDocuments, type TextFile } from "./documents.ts";

/** The values in place of the answers of stores. */
export interface StoreValues {
  /** The fields under a key in a part of the file. Undefined if the key is missing. */
  fieldsOf(part: string, key: string): JsonObject | undefined;
  /** What to add to which file for a missing key. */
  adviceFor(part: string, key: string): string;
}

/** Several files, such as a folder, count as one. Without files, no value is known. */
export function readStoreValues(files: readonly TextFile[]): { values: StoreValues; mistakes: Mistake[] } {
  const parts = new Map(SOURCE_KINDS.flatMap(({ fileParts = {} }) => Object.entries(fileParts)));
  const names = [...parts.keys()];
  const expected = `must be a mapping with ${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
  const { documents, mistakes } = readDocuments(files, expected);
  const known = new Map<string, { fields: JsonObject; where: string }>();
  for (const document of documents)
    for (const [name, entries] of Object.entries(document.object)) {
      const wrong = (message: string, ...steps: string[]) =>
        mistakes.push({
          file: document.file,
          ...document.positionOf([name, ...steps]),
          reason: "InvalidFile",
          message,
        });
      const part = parts.get(name);
      if (part === undefined) wrong(`${name}: unknown field; ${suggestNames("the file", name, names)}`);
      else if (!isObject(entries)) wrong(`${name}: must be a mapping; write ${lineFor(name, part, "KEY")}`);
      else
        for (const [key, fields] of Object.entries(entries)) {
          const id = idOf(name, part.keyOf?.(key) ?? key);
          const other = known.get(id)?.where;
          const wrongKey = part.wrongKey(key);
          if (wrongKey !== undefined) wrong(`${name}["${key}"]: ${wrongKey}`, key);
          else if (!isObject(fields))
            wrong(`${name}["${key}"]: must be a mapping of keys to values; write ${part.example}`, key);
          else if (other !== undefined) wrong(`${name}["${key}"]: is in ${other} too; remove one of them`, key);
          else known.set(id, { fields, where: `${document.file}:${document.positionOf([name, key]).line}` });
        }
    }
  const [file] = files;
  const where = file === undefined ? "a file that you pass with --vault-values" : file.name;
  return {
    values: {
      fieldsOf: (part, key) => known.get(idOf(part, key))?.fields,
      adviceFor: (part, key) => `add to ${where}: ${lineFor(part, parts.get(part), key)}`,
    },
    mistakes,
  };
}

const idOf = (part: string, key: string): string => `${part} ${key}`;
const lineFor = (name: string, part: FilePart | undefined, key: string): string =>
  `${name}: {${JSON.stringify(key)}: ${part?.example}}`;
