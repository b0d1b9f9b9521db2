/** Files may contain anything. Whatever replaces a field, the rendering reports the mistakes and never fails. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { parseAllDocuments, stringify } from "yaml";
import { stringifyJson } from "../../../src/apimachinery/json.ts";
import { renderingText } from "../../../src/render/rendering-text.ts";
import { renderTexts } from "./texts.ts";

const root = join(import.meta.dirname, "..", "..", "..");
const read = (file: string): unknown[] =>
  parseAllDocuments(readFileSync(join(root, file), "utf8")).map((each) => each.toJS());
const GRANT = {
  apiVersion: "inlay.dev/v1alpha1",
  kind: "SecretGrant",
  metadata: { name: "grant", namespace: "registry" },
  spec: { from: [{ composition: "harbor" }], to: [{ kind: "Secret", name: "bucket" }] },
};

type Holder = Record<string, unknown>;

/** Every field and element, with its parent. */
function placesIn(value: unknown): [Holder, string][] {
  if (typeof value !== "object" || value === null) return [];
  const holder = value as Holder;
  return Object.keys(holder).flatMap((key) => [[holder, key] as [Holder, string], ...placesIn(holder[key])]);
}

const junk = fc.constantFrom<unknown>(
  ...[null, 0, -1, 1.5, 9e99, true, "", "x", "{{", "a.b[", "*", "__proto__", "spec.targets[*].name"],
  ...[[], {}, [null], [[]], [{}], { a: 1 }, { "": {} }, { name: null }],
);
const change = fc.record({ at: fc.nat(), value: fc.option(junk, { nil: undefined }) });

describe("a rendering of arbitrary objects", () => {
  it("finds mistakes in most of them, and always ends", async () => {
    const objects = ["composition", "claims", "secret"].flatMap((name) => read(`test/e2e/render/${name}.yaml`));
    const all = [...objects, ...read("samples/harbor/04-binding.yaml"), GRANT];
    let [mistakes, bindings] = [0, 0];
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), async (changes) => {
        const changed = structuredClone(all);
        for (const { at, value } of changes) {
          const places = changed.flatMap(placesIn);
          const [holder, key] = places[at % places.length] ?? assert.fail();
          if (value === undefined) delete holder[key];
          else holder[key] = structuredClone(value);
        }
        const text = changed.map((each) => stringify(each)).join("---\n");
        const rendering = await renderTexts({ a: text }, { showValues: true });
        assert.ok(
          [...renderingText(rendering, 120), stringifyJson(rendering)].every((line) => typeof line === "string"),
        );
        mistakes += rendering.mistakes.length;
        bindings += rendering.bindings.length;
      }),
      { numRuns: 100 },
    );
    assert.ok(mistakes > 30 && bindings > 30, `${mistakes} mistakes, ${bindings} bindings`);
  });
});
