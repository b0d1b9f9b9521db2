/** The option `--graph` of the commands that can draw their result. */
import { InvalidArgumentError, Option } from "commander";
import type { Graph } from "../explain/graph/graph.ts";

const FORMATS = ["mermaid", "svg"] as const;
export type GraphFormat = (typeof FORMATS)[number];

export const graphOption = (): Option =>
  new Option("--graph [format]", "show the flow of values as a graph: mermaid or svg, as in --graph=svg")
    .preset("mermaid")
    .argParser(graphFormat)
    .conflicts("output");

/** Without `=`, the parser takes the name behind `--graph` for the format. */
function graphFormat(text: string): GraphFormat {
  const format = FORMATS.find((each) => each === text);
  if (format !== undefined) return format;
  throw new InvalidArgumentError(`Write --graph=${FORMATS.join(" or --graph=")}, or --graph after the name.`);
}

/** Loads only the drawing that is needed. */
export async function drawing(format: GraphFormat): Promise<(graph: Graph) => string[]> {
  return format === "svg"
    ? (await import("../explain/graph/svg.ts")).svg
    : (await import("../explain/graph/mermaid.ts")).mermaid;
}
