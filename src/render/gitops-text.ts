/** Prints the fields that GitOps tools must ignore as text. Pure. */
import { describeObject } from "../apimachinery/objects.ts";
import { plain } from "../apimachinery/plain.ts";
import { layOutWhole, paragraph, section, table } from "../explain/text.ts";
import type { WrittenObjects } from "./written-objects.ts";

export function gitopsText({ objects, notes }: WrittenObjects, width: number): string[] {
  const rows = objects.flatMap(({ kind, namespace, name, paths, managers }) => {
    const what = name === undefined ? `every ${kind}` : describeObject(kind, namespace, name);
    return paths.map((path) => [plain(what), path, managers.join(", ")]);
  });
  const parts = [
    ...table(["OBJECT", "FIELD THAT INLAY WRITES", "FIELD MANAGER"], rows),
    ...section("NOTES", notes.map(paragraph)),
  ];
  if (parts.length === 0) return ["the bindings write no field of an object in git, so there is nothing to ignore"];
  return layOutWhole(parts, width);
}
