/**
 * Places the nodes of a graph: each column below each other and centred, with lanes for edges that pass a column. An edge leads
 * from left to right, so the order of the columns is known, and no general algorithm is needed. Pure.
 */
import type { Graph, GraphEdge, GraphNode } from "./graph.ts";
import { shortened } from "./style.ts";

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface PlacedNode extends Box {
  readonly node: GraphNode;
  readonly lines: readonly string[];
}

export interface PlacedEdge {
  readonly edge: GraphEdge;
  /** From the right side of a node, through the lanes of the columns between, to the left side of the other. */
  readonly points: readonly { x: number; y: number }[];
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
}

/** In pixels, for a font with characters of equal width. */
export const CHARACTER = 7.3;
export const LINE = 17;
export const PADDING = 10;
const MARGIN = 24;
const GAP = { x: 84, y: 16 };
const LANE = 12;

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
