/** Prints a rendering as text. Pure. */
import { stringifyJson } from "../apimachinery/json.ts";
import { describeObject, type JsonValue } from "../apimachinery/objects.ts";
import { withCommand } from "../explain/advice.ts";
import { fold, plain, section, table, WIDTH } from "../explain/text.ts";
import type { OpenRendering, RenderedBinding, RenderedField, RenderedTarget } from "./rendering.ts";

/** The indentation below a target. */
const INDENT = 4;

export function renderingText({ bindings, notMade, notes }: OpenRendering): string[] {
  const notMadeRows = notMade.map(({ composition, claim, entry, reason, message }) => [
    claim,
    composition,
    entry,
    `${reason}: ${message}`,
  ]);
  const lines = [
    ...bindings.flatMap(bindingLines),
    ...section("NOT CREATED", table(["CLAIM", "COMPOSITION", "BINDING", "WHY"], notMadeRows)),
    ...section(
      "NOTES",
      notes.flatMap((note) => fold(note)),
    ),
  ];
  return lines[0] === "" ? lines.slice(1) : lines;
}

function bindingLines({ binding, composition, claim, entry, notes, targets }: RenderedBinding<JsonValue>): string[] {
  const { name, namespace } = binding.metadata as { name: string; namespace?: string };
  const from = composition === undefined ? [] : [`composed by bindings[${entry}] of ${composition} for ${claim}`];
  return [
    "",
    plain(describeObject(binding.kind, namespace, name)),
    ...[...from, ...notes].flatMap((note) => folded(note, 2)).map((line) => `  ${line}`),
    ...targets.flatMap((target) => section(`  ${heading(target)}`, targetLines(target), INDENT)),
  ];
}

/** A command stays on one line, so that it can be copied. */
function folded(text: string, indent: number): string[] {
  const { message, command } = withCommand("", text);
  return [...fold(message, WIDTH - indent), ...(command === undefined ? [] : [plain(command)])];
}

function heading({ creates, adopts, when, inFiles, ...target }: RenderedTarget<JsonValue>): string {
  const { apiVersion, kind, namespace, name } = target;
  const created = adopts === undefined ? "created" : `created or adopted: ${adopts}`;
  const how = [
    ...(creates ? [created] : inFiles ? [] : ["not in the files"]),
    ...(when === "AfterRollout" ? ["after the rollout"] : []),
  ];
  const what = name === undefined ? kind : describeObject(kind, namespace, name);
  return plain(`TARGET ${what} (${[apiVersion, ...how].join(", ")})`);
}

function targetLines({ problem, notes, fields, inFiles }: RenderedTarget<JsonValue>): string[] {
  const rows = fields.map((field) => [
    field.path,
    field.from.join(", "),
    inFiles ? textOf(field.before) : "",
    valueText(field),
  ]);
  return [
    ...(problem === undefined ? [] : folded(`not written: ${problem.reason}: ${problem.message}`, INDENT)),
    ...table(["FIELD", "FROM", "BEFORE", "VALUE"], rows, WIDTH - INDENT),
    ...notes.flatMap((note) => folded(note, INDENT)),
  ];
}

function valueText({ value, problem, changes }: RenderedField<JsonValue>): string {
  if (value === undefined) return problem?.reason ?? "";
  return changes === false ? `${textOf(value)}, unchanged` : textOf(value);
}

const textOf = (value: JsonValue | undefined): string =>
  value === undefined ? "" : typeof value === "string" ? value : stringifyJson(value);
