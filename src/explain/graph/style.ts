/** The colours of a graph, which have enough contrast for text, and the length of its lines. Pure. */
import { plain } from "../../apimachinery/plain.ts";
import type { NodeState } from "./graph.ts";

export const TEXT_COLOUR = "#1f2328";

export const COLOURS: Record<NodeState, { fill: string; line: string }> = {
  good: { fill: "#dafbe1", line: "#1a7f37" },
  waiting: { fill: "#fff8c5", line: "#9a6700" },
  bad: { fill: "#ffebe9", line: "#cf222e" },
  neutral: { fill: "#f6f8fa", line: "#57606a" },
};

const MAX_LENGTH = 64;

/** Removes control characters, and the middle of a long text: names and paths differ at their ends. */
export function shortened(text: string): string {
  const characters = [...plain(text)];
  if (characters.length <= MAX_LENGTH) return characters.join("");
  const half = Math.floor((MAX_LENGTH - 1) / 2);
  return `${characters.slice(0, half).join("")}…${characters.slice(-half).join("")}`;
}
