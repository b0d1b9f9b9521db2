/** Prints a rendering as text. Pure. */
import { stringifyJson } from "../apimachinery/json.ts";
import { describeObject, type JsonValue } from "../apimachinery/objects.ts";
import { plain } from "../apimachinery/plain.ts";
import { adviceLines, indented, layOutWhole, type Part, paragraph, section, table } from "../explain/text.ts";
import type { Opened, RenderedBinding, RenderedField, RenderedTarget, Rendering } from "./rendering.ts";

/** The indentation below a target. */
const INDENT = 4;

export function renderingText({ bindings, notMade, notes }: Opened<Rendering>, width: number): string[] {
  const notMadeRows = notMade.map(({ composition, claim, entry, reason, message, command = "" }) => [
    claim,
    composition,
    entry,
    `${reason}: ${message} ${command}`.trimEnd(),
  ]);
  const parts = [
    ...bindings.flatMap(bindingLines),
    ...section("NOT CREATED", table(["CLAIM", "COMPOSITION", "BINDING", "WHY"], notMadeRows)),
    ...section("NOTES", notes.map(paragraph)),
  ];
  return layOutWhole(parts, width);
}

function bindingLines(rendered: Opened<RenderedBinding>): Part[] {
  const { binding, composition, claim, entry, notes, grants = [], targets } = rendered;
  const { name, namespace } = binding.metadata as { name: string; namespace?: string };
  const from = composition === undefined ? [] : [`composed by bindings[${entry}] of ${composition} for ${claim}`];
  return [
    "",
    plain(describeObject(binding.kind, namespace, name)),
    ...indented([...[...from, ...notes].map(paragraph), ...grants.flatMap((each) => adviceLines("", each))], 2),
    ...targets.flatMap((target) => section(`  ${heading(target)}`, targetLines(target), INDENT)),
  ];
}

function heading({ creates, adopts, when, inFiles, ...target }: Opened<RenderedTarget>): string {
  const { apiVersion, kind, namespace, name } = target;
  const created = adopts === undefined ? "created" : `created or adopted: ${adopts}`;
  const how = [
    ...(creates ? [created] : inFiles ? [] : ["not in the files"]),
    ...(when === "AfterRollout" ? ["after the rollout"] : []),
  ];
  const what = name === undefined ? kind : describeObject(kind, namespace, name);
  return plain(`TARGET ${what} (${[apiVersion, ...how].join(", ")})`);
}

function targetLines({ problem, notes, fields, inFiles }: Opened<RenderedTarget>): Part[] {
  const rows = fields.map((field) => [
    field.path,
    field.from.join(", "),
    inFiles ? textOf(field.before) : "",
    valueText(field),
  ]);
  return [
    ...(problem === undefined ? [] : adviceLines(`not written: ${problem.reason}: `, problem)),
    ...table(["FIELD", "FROM", "BEFORE", "VALUE"], rows),
    ...notes.map(paragraph),
  ];
}

function valueText({ value, problem, changes }: Opened<RenderedField>): string {
  if (value === undefined) return problem?.reason ?? "";
  return changes === false ? `${textOf(value)}, unchanged` : textOf(value);
}

const textOf = (value: JsonValue | undefined): string =>
  value === undefined ? "" : typeof value === "string" ? value : stringifyJson(value);
