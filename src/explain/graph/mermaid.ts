/** Prints a graph as a Mermaid flowchart, which GitHub, GitLab and many wikis draw. Pure. */
import { collapsed, type Graph, type GraphNode } from "./graph.ts";
import { COLOURS, shortened, TEXT_COLOUR } from "./svg.ts";

export function mermaid(whole: Graph): string[] {
  const { title, description, nodes, edges } = collapsed(whole);
  const ids = new Map(nodes.map(({ id }, at) => [id, `n${at}`]));
  const used = new Set(nodes.map(({ state }) => state));
  return [
    "flowchart LR",
    `  accTitle: ${escaped(title)}`,
    `  accDescr: ${escaped(description)}`,
    ...nodes.map((node) => `  ${ids.get(node.id)}["${label(node)}"]:::${node.state}`),
    ...edges.map(({ from, to, isRestart }) =>
      isRestart ? `  ${ids.get(from)} -. restarts .-> ${ids.get(to)}` : `  ${ids.get(from)} --> ${ids.get(to)}`,
    ),
    ...Object.entries(COLOURS).flatMap(([state, { fill, line }]) =>
      used.has(state as GraphNode["state"])
        ? [`  classDef ${state} fill:${fill},stroke:${line},color:${TEXT_COLOUR}`]
        : [],
    ),
  ];
}

const label = ({ title, lines, status }: GraphNode) =>
  [title, ...lines, status].map((line) => escaped(shortened(line))).join("<br/>");

/** Mermaid gives a meaning to most punctuation, so only what names usually have stays as it is. */
const escaped = (text: string): string =>
  text.replaceAll(/[^\p{L}\p{N} ./_:,-]/gu, (each) => `#${each.codePointAt(0)};`);
