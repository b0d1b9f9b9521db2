/** The drawings of a graph: Mermaid's own parser accepts them, and the SVG is well-formed, readable and accessible. */
import assert from "node:assert/strict";
import DOMPurify from "dompurify";
import { collapsed, type Graph } from "../../../../src/explain/graph/graph.ts";
import { mermaid } from "../../../../src/explain/graph/mermaid.ts";
import { graphOfExplanation } from "../../../../src/explain/graph/read.ts";
import { COLOURS, layOutGraph, svg, TEXT_COLOUR } from "../../../../src/explain/graph/svg.ts";
import { explanationOf, explanationWith, HOSTILE, objectOf, targetOf } from "./graphs.ts";

const SIZES = [1, 20, 200];
const graphWith = (targets: number) => graphOfExplanation(explanationWith(targets), []);
const hostile = (): Graph => {
  const object = { ...objectOf("harbor", "Synced"), fields: HOSTILE.map((path) => ({ path, held: true })) };
  return graphOfExplanation(explanationOf({ targets: [targetOf(object)] }), []);
};

interface Flowchart {
  db: { getVertices(): Map<string, { text?: string }>; getEdges(): unknown[]; getAccTitle(): string };
}

/** Parses a text as GitHub does. Mermaid cleans HTML with a browser's DOM, which is not needed to parse. */
async function parsed(lines: string[]): Promise<Flowchart> {
  Object.assign(DOMPurify, { addHook: () => {}, sanitize: (text: string) => text });
  const { default: library } = await import("mermaid");
  await library.parse(lines.join("\n"));
  return (await library.mermaidAPI.getDiagramFromText(lines.join("\n"))) as unknown as Flowchart;
}

/** The elements of the SVG in order, as `tag` and `/tag`. Throws if they are not nested, or if the text has a bare `<` or `&`. */
function elementsOf(text: string): string[] {
  const open: string[] = [];
  const found = [...text.matchAll(/<(\/?)([a-z]+)((?:\s[a-zA-Z:-]+="[^"<>]*")*)\s*(\/?)>/g)];
  for (const [whole, isEnd, tag = "", , isWhole] of found) {
    if (isEnd) assert.equal(open.pop(), tag, whole);
    else if (!isWhole) open.push(tag);
  }
  assert.deepEqual(open, []);
  const rest = found.reduce((left, [whole]) => left.replace(whole, ""), text);
  assert.doesNotMatch(rest, /[<>]|&(?!#\d+;)/);
  return found.map(([, isEnd, tag]) => `${isEnd}${tag}`);
}

describe("the Mermaid drawing of a graph", function () {
  this.timeout("1m");

  for (const size of SIZES)
    it(`is accepted by Mermaid's parser with ${size} targets`, async () => {
      const graph = graphWith(size);
      const { nodes, edges } = collapsed(graph);
      const { db } = await parsed(mermaid(graph));
      assert.equal(db.getVertices().size, nodes.length);
      assert.equal(db.getEdges().length, edges.length);
      assert.match(db.getAccTitle(), /SecretBinding registry\/harbor-s3/);
      assert.ok(mermaid(graph).join("\n").length < 50_000);
    });

  it("takes no name for its own syntax", async () => {
    const { db } = await parsed(mermaid(hostile()));
    assert.deepEqual([...db.getVertices().keys()], ["n0", "n1", "n2"]);
    const labels = mermaid(hostile()).filter((line) => line.includes('["'));
    for (const label of labels) assert.match(label, /^ {2}n\d\["(?:[\p{L}\p{N} ./_:,-]|#\d+;|<br\/>)*"\]:::\w+$/u);
  });
});

describe("the SVG drawing of a graph", () => {
  for (const size of SIZES)
    it(`is well-formed with ${size} targets, and no box covers another one or an edge`, () => {
      const graph = collapsed(graphWith(size));
      const elements = elementsOf(svg(graph).join("\n"));
      assert.equal(elements.filter((each) => each === "g").length, graph.nodes.length);
      const { nodes, edges, width, height } = layOutGraph(graph);
      assert.ok(height < 3_000 && width < 2_000, `${width} x ${height}`);
      for (const a of nodes) {
        assert.ok(a.x >= 0 && a.y >= 0 && a.x + a.width <= width && a.y + a.height <= height);
        for (const b of nodes)
          assert.ok(
            a === b || a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y,
          );
      }
      for (const { points } of edges)
        for (const { x, y } of points.slice(1, -1))
          assert.ok(
            nodes.every((each) => x < each.x || x > each.x + each.width || y < each.y || y > each.y + each.height),
          );
    });

  it("draws no name as an element, and contains no script and no control characters", () => {
    const text = svg(hostile()).join("\n");
    assert.deepEqual([...new Set(elementsOf(text).map((each) => each.replace("/", "")))].sort(), [
      "defs",
      "desc",
      "g",
      "marker",
      "path",
      "rect",
      "svg",
      "text",
      "title",
    ]);
    assert.ok(!text.includes("\u202e"));
  });

  it("has a title and a description, and names each state in words", () => {
    const text = svg(graphWith(20)).join("\n");
    assert.match(text, /role="img" aria-labelledby="title desc"/);
    assert.match(text, /<title id="title">The flow of values through SecretBinding registry\/harbor-s3<\/title>/);
    assert.match(text, /<desc id="desc">.*with a problem.*<\/desc>/);
    for (const status of ["Conflict", "Synced", "rolling out"])
      assert.match(text, new RegExp(`<text [^>]*>${status}</text>`));
  });

  it("has texts with a contrast of at least 4.5 to their background", () => {
    for (const [state, { fill, line }] of Object.entries(COLOURS))
      for (const colour of [TEXT_COLOUR, line])
        assert.ok(contrast(fill, colour) >= 4.5, `${state}: ${contrast(fill, colour)}`);
  });
});

/** The contrast ratio of WCAG 2. */
function contrast(a: string, b: string): number {
  const [high = 0, low = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

function luminance(colour: string): number {
  const parts = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);
  const [red = 0, green = 0, blue = 0] = parts.map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
