/** Draws a graph as SVG, without scripts, links or other files. Readable without colours and for screen readers. Pure. */
import { plain } from "../../apimachinery/plain.ts";
import { collapsed, type Graph } from "./graph.ts";
import { LINE, layOutGraph, PADDING, type PlacedEdge, type PlacedNode } from "./layout.ts";
import { COLOURS, TEXT_COLOUR } from "./style.ts";

const FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
const EDGE_COLOUR = "#57606a";
/** How far the curve of an edge reaches to the right before it bends. */
const BEND = 42;

export function svg(whole: Graph): string[] {
  const graph = collapsed(whole);
  const { width, height, nodes, edges } = layOutGraph(graph);
  const [w, h] = [Math.ceil(width), Math.ceil(height)];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" role="img" aria-labelledby="title desc" font-family="${FONT}" font-size="12">`,
    `<title id="title">${escaped(graph.title)}</title>`,
    `<desc id="desc">${escaped(graph.description)}</desc>`,
    `<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="${EDGE_COLOUR}"/></marker></defs>`,
    `<rect width="${w}" height="${h}" fill="#ffffff"/>`,
    ...edges.map(path),
    ...nodes.flatMap(box),
    "</svg>",
  ];
}

function path({ edge, points: [start, ...rest] }: PlacedEdge): string {
  if (start === undefined) return "";
  let from = start;
  const steps = rest.map((to, at) => {
    // Every second part leads straight through a column.
    const isStraight = at % 2 === 1;
    const step = isStraight ? `H${round(to.x)}` : curve(from, to);
    from = to;
    return step;
  });
  const dashes = edge.isRestart ? ' stroke-dasharray="5 4"' : "";
  return `<path d="M${round(start.x)} ${round(start.y)} ${steps.join(" ")}" fill="none" stroke="${EDGE_COLOUR}" marker-end="url(#arrow)"${dashes}/>`;
}

const curve = (from: { x: number; y: number }, to: { x: number; y: number }) =>
  `C${round(from.x + BEND)} ${round(from.y)} ${round(to.x - BEND)} ${round(to.y)} ${round(to.x)} ${round(to.y)}`;

function box({ node, lines, x, y, width, height }: PlacedNode): string[] {
  const { fill, line } = COLOURS[node.state];
  const last = lines.length - 1;
  const texts = lines.map((text, at) => {
    const weight = at === 0 || at === last ? ' font-weight="bold"' : "";
    const colour = at === last ? line : TEXT_COLOUR;
    return `<text x="${round(x + PADDING)}" y="${round(y + PADDING + at * LINE + 12)}" fill="${colour}"${weight}>${escaped(text)}</text>`;
  });
  return [
    // Viewers show the title as a tooltip, with the whole name.
    `<g><title>${escaped([node.title, ...node.lines, node.status].join("\n"))}</title>`,
    `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="6" fill="${fill}" stroke="${line}"/>`,
    ...texts,
    "</g>",
  ];
}

const round = (pixels: number) => Math.round(pixels * 10) / 10;

const escaped = (text: string): string =>
  text
    .split("\n")
    .map((line) => plain(line).replaceAll(/[<>&"']/g, (each) => `&#${each.codePointAt(0)};`))
    .join("\n");
