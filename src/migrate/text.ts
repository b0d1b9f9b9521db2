/** Prints a migration: YAML with comments to apply, or a table. Pure. */
import { stringify } from "yaml";
import { describeObject, type JsonObject } from "../apimachinery/objects.ts";
import { plain } from "../apimachinery/plain.ts";
import { YAML_OPTIONS } from "../apimachinery/yaml-options.ts";
import { fold, layOut, table } from "../explain/text.ts";
import type { Converted, Migration } from "./migration.ts";

const COMMENT_WIDTH = 110;

/** One document for each object. The comments say what it replaces, and what to do before you apply it. */
export function migrationYaml({ converted }: Pick<Migration, "converted">): string[] {
  return converted.map(documentText);
}

function documentText({ from, notes, object }: Converted, at: number): string {
  const comments = [...from.map((each) => `From ${each}`), ...notes.flatMap((note) => fold(note, COMMENT_WIDTH))];
  const head = [...(at === 0 ? [] : ["---"]), ...comments.map((each) => `# ${plain(each)}`)];
  return [...head, stringify(object, YAML_OPTIONS).trimEnd()].join("\n");
}

export function migrationText({ converted }: Pick<Migration, "converted">, width: number): string[] {
  const rows = converted.map(({ object, from, notes }) => {
    const { name, namespace } = object["metadata"] as JsonObject;
    return [
      describeObject(String(object["kind"]), namespace as string | undefined, String(name)),
      from.join(", "),
      notes.join(" "),
    ];
  });
  return layOut(table(["OBJECT", "FROM", "NOTES"], rows), width);
}
