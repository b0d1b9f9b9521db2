/**
 * What lies at which paths of an object comes in; what lies where writing a path may touch it goes out, without looking at
 * the rest. Elements of a list are not told apart: who asks has to see to that.
 */
import type { FieldPath, Segment } from "../apimachinery/field-path.ts";

interface Node {
  /** What ends here. */
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

  /** What is at the path, at one above it, or below it. */
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

/** No key is called so with its mark before it. */
const nameOf = (segment: Segment): string => (segment.kind === "key" ? `.${segment.key}` : "[]");

function collect({ here, below }: Node, found: Set<string>): void {
  for (const item of here) found.add(item);
  for (const node of below.values()) collect(node, found);
}
