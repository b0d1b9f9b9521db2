/**
 * Indexes values by their paths in an object. Finds the values whose paths a write may touch, without a scan of all. It does not
 * distinguish the elements of a list: the caller does.
 */
import type { FieldPath, Segment } from "../apimachinery/field-path.ts";

interface Node {
  /** The values whose path ends here. */
  here: Set<string>;
  below: Map<string, Node>;
}

export class PathIndex {
  readonly #root: Node = newNode();

  add(path: FieldPath, item: string): void {
    let node = this.#root;
    for (const name of path.segments.map(nameOf)) {
      const next = node.below.get(name) ?? newNode();
      node.below.set(name, next);
      node = next;
    }
    node.here.add(item);
  }

  delete(path: FieldPath, item: string): void {
    const names = path.segments.map(nameOf);
    const nodes = [this.#root];
    for (const name of names) {
      const next = nodes.at(-1)?.below.get(name);
      if (next === undefined) return;
      nodes.push(next);
    }
    nodes.at(-1)?.here.delete(item);
    for (let depth = names.length; depth > 0; depth--) {
      const { here, below } = nodes[depth] as Node;
      if (here.size + below.size > 0) return;
      nodes[depth - 1]?.below.delete(names[depth - 1] as string);
    }
  }

  /** The values at the path, above it, or below it. */
  touching(path: FieldPath): Set<string> {
    const found = new Set<string>();
    let node: Node | undefined = this.#root;
    for (const name of path.segments.map(nameOf)) {
      node = node.below.get(name);
      if (node === undefined) return found;
      for (const item of node.here) found.add(item);
    }
    collect(node, found);
    return found;
  }
}

const newNode = (): Node => ({ here: new Set(), below: new Map() });

/** The dot keeps keys apart from list elements. */
const nameOf = (segment: Segment): string => (segment.kind === "key" ? `.${segment.key}` : "[]");

function collect({ here, below }: Node, found: Set<string>): void {
  for (const item of here) found.add(item);
  for (const node of below.values()) collect(node, found);
}
