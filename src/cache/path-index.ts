/**
 * Indexes values by their paths in an object. Finds the values whose paths a write may touch, without a scan of all. It distinguishes neither
 * the elements of a list nor what is deeper than some levels: the caller does.
 */
import type { FieldPath, Segment } from "../apimachinery/field-path.ts";
import { getOrInsert } from "../apimachinery/maps.ts";

/** The levels of a path that are indexed. */
const MAX_DEPTH = 8;

interface Node {
  /** The values whose path ends here. */
  here: Set<string>;
  below: Map<string, Node>;
}

export class PathIndex {
  readonly #root: Node = newNode();
  readonly #total: { paths: number };
  #paths = 0;

  /** `total` counts the paths of several indexes. */
  constructor(total: { paths: number }) {
    this.#total = total;
  }

  add(path: FieldPath, item: string): void {
    let node = this.#root;
    for (const name of namesOf(path)) node = getOrInsert(node.below, name, newNode);
    if (!node.here.has(item)) this.#count(1);
    node.here.add(item);
  }

  delete(path: FieldPath, item: string): void {
    const names = namesOf(path);
    const nodes = [this.#root];
    for (const name of names) {
      const next = nodes.at(-1)?.below.get(name);
      if (next === undefined) return;
      nodes.push(next);
    }
    if (nodes.at(-1)?.here.delete(item)) this.#count(-1);
    for (let depth = names.length; depth > 0; depth--) {
      const { here, below } = nodes[depth] as Node;
      if (here.size + below.size > 0) return;
      nodes[depth - 1]?.below.delete(names[depth - 1] as string);
    }
  }

  /** The values at the paths, above them, or below them. Visits no node twice, and yields after each path. */
  *touching(paths: readonly FieldPath[]): Generator<void, Set<string>> {
    const found = new Set<string>();
    /** Nodes whose own values are found, and those below which all are. */
    const [own, whole] = [new Set<Node>(), new Set<Node>()];
    const collect = (node: Node) => {
      if (!own.has(node)) for (const item of node.here) found.add(item);
      own.add(node);
    };
    const collectBelow = (node: Node) => {
      if (whole.has(node)) return;
      whole.add(node);
      collect(node);
      for (const each of node.below.values()) collectBelow(each);
    };
    for (const path of paths) {
      let node: Node | undefined = this.#root;
      for (const name of namesOf(path)) {
        if (whole.has(node)) break;
        node = node.below.get(name);
        if (node === undefined) break;
        collect(node);
      }
      if (node !== undefined) collectBelow(node);
      yield;
    }
    return found;
  }

  /** Ends the index: its paths do not count any more. */
  end(): void {
    this.#count(-this.#paths);
  }

  #count(more: number): void {
    this.#paths += more;
    this.#total.paths += more;
  }
}

const newNode = (): Node => ({ here: new Set(), below: new Map() });

const namesOf = ({ segments }: FieldPath): string[] => segments.slice(0, MAX_DEPTH).map(nameOf);

/** The dot keeps keys apart from list elements. */
const nameOf = (segment: Segment): string => (segment.kind === "key" ? `.${segment.key}` : "[]");
