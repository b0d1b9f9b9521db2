/** Prints what bindings own in an object. Pure. */
import { firstOf } from "../apimachinery/name-list.ts";
import { describeObject, plainPath, plainWord } from "../apimachinery/objects.ts";
import { plain } from "../apimachinery/plain.ts";
import { withManagers } from "../targets/shared-values.ts";
import type { BindingOfObject, ObjectLook } from "./object.ts";
import { layOut, type Part, paragraph, section, table } from "./text.ts";

const MAX_PATHS = 10;

export function objectText({ object, bindings }: ObjectLook, width: number): string[] {
  const where = describeObject(object.kind, object.namespace, object.name);
  const rows = bindings.map(({ fieldManager, binding, state, deleting, message, paths }) => [
    binding ?? plainWord(fieldManager),
    state === "NotFound"
      ? "does not exist"
      : state === "Unreadable"
        ? `unknown: ${message}`
        : deleting
          ? "being deleted"
          : "exists",
    firstOf(paths.map(plainPath), MAX_PATHS),
  ]);
  const left = bindings.filter(({ leftOver }) => leftOver !== undefined);
  return layOut(
    [
      paragraph(where),
      ...section("WRITTEN BY BINDINGS", table(["BINDING", "STATE", "FIELDS"], rows)),
      ...section("WHAT TO DO", left.length === 0 ? [paragraph(nothingLeft(bindings))] : left.flatMap(adviceOn)),
    ],
    width,
  );
}

function nothingLeft(bindings: readonly BindingOfObject[]): string {
  if (bindings.length === 0) return "nothing, no binding owns a field of this object";
  return bindings.some(({ state }) => state === "Unreadable")
    ? "ask for permission to list SecretBindings, to see which of these bindings exist"
    : "nothing, every binding that owns fields of this object exists";
}

/** A command stays on one line, so that it can be copied. */
function adviceOn({ fieldManager, leftOver }: BindingOfObject): Part[] {
  const { created = false, command, shared = [], required = [], whole = [] } = leftOver ?? {};
  const what = created ? "the object that it created is" : "fields that it wrote are";
  const stays = (paths: readonly string[], why: string) =>
    created || paths.length === 0 ? [] : [paragraph(`${firstOf(paths, MAX_PATHS)}: ${why}`)];
  return [
    paragraph(
      `the binding of the field manager ${plainWord(fieldManager)} does not exist, and ${what} still here${command === undefined ? "" : "; remove them, if nothing else uses them, with:"}`,
    ),
    ...(command === undefined ? [] : [plain(command)]),
    ...stays(shared.map(withManagers), "the field managers in parentheses own it too, so it stays"),
    ...stays(required.map(plainPath), "the object is not valid without it; set another value"),
    ...stays(whole.map(plainPath), "it is one value, and others may have written parts of it; check it yourself"),
  ];
}
