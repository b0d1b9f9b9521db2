/** Prints a migration: YAML with comments to apply, or a table. Pure. */
import { stringify } from "yaml";
import { stringifyJson } from "../apimachinery/json.ts";
import { describeObject, type JsonObject } from "../apimachinery/objects.ts";
import { plain } from "../apimachinery/plain.ts";
import { YAML_OPTIONS } from "../apimachinery/yaml-options.ts";
import { fold, layOut, paragraph, table } from "../explain/text.ts";
import type { Mistake } from "../render/documents.ts";
import type { Converted, Migration } from "./migration.ts";

const COMMENT_WIDTH = 110;

type Printed = Pick<Migration, "converted" | "unplaced" | "remarks">;

/** One document for each object. The comments say what it replaces, what it does not do, and what to do before you apply it. */
export function migrationYaml({ converted, unplaced, remarks }: Printed): string[] {
  const head = [...remarks.flatMap((each) => comment(each)), ...unplaced.flatMap(mark)];
  const documents = converted.map((each, at) =>
    [...(at === 0 && head.length === 0 ? [] : ["---"]), ...documentLines(each)].join("\n"),
  );
  return [...(head.length > 0 ? [head.join("\n")] : []), ...documents];
}

function documentLines({ from, notes, notConverted, object }: Converted): string[] {
  const comments = [...from.map((each) => `# ${plain(`From ${each}`)}`), ...notes.flatMap((note) => comment(note))];
  return [...comments, ...notConverted.flatMap(mark), objectText(object)];
}

/** In YAML 1.1, which kubectl reads, these end a line, also within a text. */
const LINE_ENDS = /[\u0085\u2028\u2029]/g;

/** Any JSON is YAML, and can escape what ends a line. */
function objectText(object: JsonObject): string {
  const yaml = stringify(object, YAML_OPTIONS).trimEnd();
  if (yaml.search(LINE_ENDS) < 0) return yaml;
  const escaped = (text: string) => `\\u${text.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return stringifyJson(object, 2).replaceAll(LINE_ENDS, escaped);
}

/** A text as a comment. No text of a file ends it, because `fold` replaces line breaks. */
const comment = (text: string, indent = ""): string[] =>
  fold(text, COMMENT_WIDTH).map((line, at) => `# ${at === 0 ? "" : indent}${line}`);

const placed = ({ file, line, message }: Mistake): string => `${file}:${line}: ${message}`;
const mark = (mistake: Mistake): string[] => comment(`NOT CONVERTED: ${placed(mistake)}`, "  ");

export function migrationText({ converted, unplaced, remarks }: Printed, width: number): string[] {
  const rows = converted.map(({ object, from, notes, notConverted }) => {
    const { name, namespace } = object["metadata"] as JsonObject;
    return [
      describeObject(String(object["kind"]), namespace as string | undefined, String(name)),
      from.join(", "),
      notes.join(" "),
      notConverted.map(placed).join(" "),
    ];
  });
  const others = [...remarks, ...unplaced.map((each) => `NOT CONVERTED: ${placed(each)}`)].map(paragraph);
  return layOut([...others, ...table(["OBJECT", "FROM", "NOTES", "NOT CONVERTED"], rows)], width);
}
