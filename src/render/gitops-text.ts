/** Prints the fields that GitOps tools must ignore as text. Pure. */
import { describeObject } from "../apimachinery/objects.ts";
import { plain } from "../apimachinery/plain.ts";
import { layOutWhole, paragraph, section, table } from "../explain/text.ts";
import type { WrittenObjects } from "./written-objects.ts";

export const NOTHING = "the bindings write no field that the files have, so there is nothing to ignore";

export function gitopsText({ objects, notes }: WrittenObjects, width: number): string[] {
  const rows = objects.flatMap(({ kind, namespace, name, paths, bindings }) =>
    paths.map((path) => [plain(describeObject(kind, namespace, name)), path, bindings.join(", ")]),
  );
  if (rows.length === 0 && notes.length === 0) return [NOTHING];
  const parts = [
    ...(rows.length === 0 ? [NOTHING] : table(["OBJECT", "FIELD TO IGNORE", "BINDINGS THAT WRITE IT"], rows)),
    ...section("NOTES", notes.map(paragraph)),
  ];
  return layOutWhole(parts, width);
}
