/** Draws a graph as SVG, without scripts, links or other files. Readable without colours and for screen readers. Pure. */
import { plain } from "../../apimachinery/plain.ts";
import { collapsed, type Graph, type GraphEdge, type GraphNode, type NodeState } from "./graph.ts";

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

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

interface PlacedNode extends Box {
  readonly node: GraphNode;
  readonly lines: readonly string[];
}

interface PlacedEdge {
  readonly edge: GraphEdge;
  /** From the right side of a node, through the lanes of the columns between, to the left side of the other. */
  readonly points: readonly { x: number; y: number }[];
}

interface Layout {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
}

/** In pixels, for a font with characters of equal width. */
const CHARACTER = 7.3;
const LINE = 17;
const PADDING = 10;
const MARGIN = 24;
const GAP = { x: 84, y: 16 };
const LANE = 12;

/** Centres the columns, with lanes for edges that pass one. Edges lead to the right, so no general algorithm is needed. */
export function layOutGraph({ nodes, edges }: Pick<Graph, "nodes" | "edges">): Layout {
  const used = [...new Set(nodes.map(({ column }) => column))].sort((a, b) => a - b);
  const rank = new Map(nodes.map(({ id, column }) => [id, used.indexOf(column)]));
  const rankOf = (id: string) => rank.get(id) ?? 0;
  const columns = used.map((column) => nodes.filter((node) => node.column === column).map(sizeOf));
  /** The nodes whose edges pass each column. The edges of one node share a lane. */
  const passing = used.map((_, at) => [
    ...new Set(edges.filter(({ from, to }) => rankOf(from) < at && at < rankOf(to)).map(({ from }) => from)),
  ]);
  const heights = columns.map((column, at) => heightOf(column, passing[at]?.length ?? 0));
  const height = Math.max(0, ...heights);
  const placed = new Map<string, PlacedNode>();
  const lanes = new Map<string, Box>();
  let x = MARGIN;
  for (const [at, column] of columns.entries()) {
    const width = Math.max(...column.map((each) => each.width));
    let y = MARGIN + (height - (heights[at] ?? 0)) / 2;
    for (const each of column) {
      placed.set(each.node.id, { ...each, width, x, y });
      y += each.height + GAP.y;
    }
    for (const from of passing[at] ?? []) {
      lanes.set(`${at} ${from}`, { x, y, width, height: 0 });
      y += LANE;
    }
    x += width + GAP.x;
  }
  const pointsOf = ({ from, to }: GraphEdge) => {
    const [start, end] = [placed.get(from), placed.get(to)];
    if (start === undefined || end === undefined) return [];
    const between = used.flatMap((_, at) =>
      rankOf(from) < at && at < rankOf(to) ? (lanes.get(`${at} ${from}`) ?? []) : [],
    );
    return [
      { x: start.x + start.width, y: start.y + start.height / 2 },
      ...between.flatMap((lane) => [
        { x: lane.x, y: lane.y },
        { x: lane.x + lane.width, y: lane.y },
      ]),
      { x: end.x, y: end.y + end.height / 2 },
    ];
  };
  return {
    width: x - GAP.x + MARGIN,
    height: height + 2 * MARGIN,
    nodes: [...placed.values()],
    edges: edges.map((edge) => ({ edge, points: pointsOf(edge) })),
  };
}

function sizeOf(node: GraphNode) {
  const lines = [node.title, ...node.lines, node.status].map(shortened);
  const longest = Math.max(...lines.map((line) => [...line].length));
  return { node, lines, width: longest * CHARACTER + 2 * PADDING, height: lines.length * LINE + 2 * PADDING };
}

function heightOf(column: readonly { height: number }[], lanes: number): number {
  const sum = column.reduce((total, { height }) => total + height + GAP.y, 0);
  return sum - GAP.y + (lanes > 0 ? GAP.y + lanes * LANE : 0);
}

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
