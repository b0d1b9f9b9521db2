/** The output of a command: tables for people, and JSON or YAML for programs. */
import { Option } from "commander";
import { YAML_OPTIONS } from "../apimachinery/yaml-options.ts";

/** The width of the terminal, or COLUMNS. `Infinity` for a pipe or file, so that programs find whole lines. */
export function terminalWidth(
  { isTTY, columns }: Pick<NodeJS.WriteStream, "isTTY" | "columns">,
  { COLUMNS = "" }: NodeJS.ProcessEnv,
): number {
  if (/^[1-9]\d{0,5}$/.test(COLUMNS)) return Number(COLUMNS);
  // A terminal that does not know its width has 0 columns.
  return isTTY && columns > 0 ? columns : Number.POSITIVE_INFINITY;
}

export type OutputFormat = "table" | "json" | "yaml";

/** The option `-o`. `more` are formats that only this command has. */
export const outputOption = (...more: string[]): Option =>
  new Option("-o, --output <format>", "output format: table for people, json or yaml for programs")
    .choices(["table", "json", "yaml", ...more])
    .default("table");

/** Prints the result to standard output. `asText` makes the lines of the table for a width in columns. */
export async function print<T>(result: T, format: OutputFormat, asText: (result: T, width: number) => string[]) {
  const text = await textOf(result, format, asText);
  if (text !== "") process.stdout.write(`${text}\n`);
}

async function textOf<T>(result: T, format: OutputFormat, asText: (result: T, width: number) => string[]) {
  // Unlike JSON.stringify, it writes integers of 64 bits.
  if (format === "json") return (await import("../apimachinery/json.ts")).stringifyJson(result, 2);
  if (format === "yaml") {
    const { stringify } = await import("yaml");
    return stringify(result, YAML_OPTIONS).trimEnd();
  }
  return asText(result, terminalWidth(process.stdout, process.env)).join("\n");
}
