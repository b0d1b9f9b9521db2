/** The flow of values as a graph: nodes in columns from the Secret to the workloads, each with its state. Contains no values. Pure. */
import { firstOf } from "../../apimachinery/name-list.ts";

/** Words say it too: `status` of the node. */
export type NodeState = "good" | "waiting" | "bad" | "neutral";

export interface GraphNode {
  readonly id: string;
  /** The position from the left. An edge leads to a higher column. */
  readonly column: number;
  /** The kind and name of the object. */
  readonly title: string;
  /** What is used of it, such as fields and keys. */
  readonly lines: readonly string[];
  readonly state: NodeState;
  /** The state in a few words. */
  readonly status: string;
}

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  /** It restarts, and no value flows. */
  readonly isRestart?: true;
}

export interface Graph {
  readonly title: string;
  /** One sentence for people who don't see the graph. */
  readonly description: string;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
}

/** More nodes in a column than this can't be read. Programs that draw Mermaid refuse more than 500 edges. */
export const MAX_NODES_IN_COLUMN = 20;
const MAX_LINES = 6;
const MAX_STATUSES = 4;
const BY_TROUBLE: readonly NodeState[] = ["bad", "waiting", "neutral", "good"];

/** The first lines, and how many more there are. */
export function firstLines(lines: readonly string[], what: string): string[] {
  if (lines.length <= MAX_LINES) return [...lines];
  return [...lines.slice(0, MAX_LINES - 1), `and ${lines.length - MAX_LINES + 1} more ${what}`];
}

/** Replaces most nodes of a long column by one node. Nodes with problems stay. */
export function collapsed({ nodes, edges, ...graph }: Graph): Graph {
  const columns = [...Map.groupBy(nodes, ({ column }) => column)].sort(([a], [b]) => a - b);
  /** The node that replaces another one, by its id. */
  const standIns = new Map<string, string>();
  const shown = columns.flatMap(([column, all]) => {
    if (all.length <= MAX_NODES_IN_COLUMN) return all;
    const byTrouble = all.toSorted((a, b) => BY_TROUBLE.indexOf(a.state) - BY_TROUBLE.indexOf(b.state));
    const rest = byTrouble.slice(MAX_NODES_IN_COLUMN - 1);
    const id = `more-${column}`;
    for (const each of rest) standIns.set(each.id, id);
    return [...byTrouble.slice(0, MAX_NODES_IN_COLUMN - 1), restOf(id, column, rest)];
  });
  const moved = edges.map(({ from, to, ...edge }) => ({
    ...edge,
    from: standIns.get(from) ?? from,
    to: standIns.get(to) ?? to,
  }));
  const unique = new Map(moved.map((edge) => [`${edge.from} ${edge.to} ${edge.isRestart ?? false}`, edge]));
  return { ...graph, nodes: shown, edges: [...unique.values()] };
}

function restOf(id: string, column: number, rest: readonly GraphNode[]): GraphNode {
  const statuses = [...Map.groupBy(rest, ({ status }) => status)].map(([status, { length }]) => `${length} ${status}`);
  const state = BY_TROUBLE.find((each) => rest.some((node) => node.state === each)) ?? "neutral";
  const lines = ["-o json shows all of them"];
  return { id, column, title: `${rest.length} more`, lines, state, status: firstOf(statuses, MAX_STATUSES) };
}

/** One sentence with the numbers of nodes by their state. */
export function describe(what: string, nodes: readonly GraphNode[]): string {
  const counts = BY_TROUBLE.flatMap((state) => {
    const { length } = nodes.filter((node) => node.state === state);
    return length === 0 ? [] : [`${length} ${IN_WORDS[state]}`];
  });
  return `${what}: ${nodes.length} ${nodes.length === 1 ? "object" : "objects"}, ${counts.join(", ")}.`;
}

const IN_WORDS: Record<NodeState, string> = {
  bad: "with a problem",
  waiting: "waiting",
  neutral: "without a state",
  good: "in order",
};
