/** Files with thousands of keys: the work grows with their number, not with its square. */
import assert from "node:assert/strict";
import { readDocuments } from "../../../src/render/documents.ts";
import { validate } from "../../../src/validate/validate.ts";

const KEYS = 5_000;
const HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: many}\ndata:\n";
const LINE_OF_FIRST_KEY = HEAD.split("\n").length;
const keys = Array.from({ length: KEYS }, (_, n) => `k${n}`);
const text = HEAD + keys.map((key) => `  ${key}: a\n`).join("");

/** How many elements `find` and `some` look at while `work` runs. */
function comparisons(work: () => void): number {
  const { find, some } = Array.prototype;
  let count = 0;
  // biome-ignore lint/suspicious/noExplicitAny: any function of an array
  const counting = (method: any) =>
    function (this: unknown[], test: (...args: unknown[]) => unknown) {
      return method.call(this, (...args: unknown[]) => {
        count++;
        return test(...args);
      });
    };
  Object.assign(Array.prototype, { find: counting(find), some: counting(some) });
  try {
    work();
  } finally {
    Object.assign(Array.prototype, { find, some });
  }
  return count;
}

describe("a file with many keys", function () {
  this.timeout("1m");

  it("is read with a number of comparisons that grows with the number of keys", () => {
    const count = comparisons(() => {
      const { documents, mistakes } = readDocuments([{ name: "a.yaml", text }]);
      assert.deepEqual(mistakes, []);
      assert.equal(Object.keys(documents[0]?.object["data"] ?? {}).length, KEYS);
      for (const [at, key] of keys.entries())
        assert.equal(documents[0]?.positionOf(["data", key]).line, LINE_OF_FIRST_KEY + at);
    });
    assert.ok(count < 100 * KEYS, `${count} comparisons`);
  });

  it("reports each duplicate key in its line", () => {
    const { mistakes } = readDocuments([{ name: "a.yaml", text: `${text}  k7: b\n  k8: c\n` }]);
    const last = LINE_OF_FIRST_KEY + KEYS;
    assert.deepEqual(
      mistakes.map(({ line, message }) => [line, message]),
      [last, last + 1].map((line) => [line, "duplicate key; remove one of them"]),
    );
  });

  it("is refused with the size if it is a binding that the controller would not reconcile", async () => {
    const annotations = keys.map((key) => `    ${key}: ${"a".repeat(120)}\n`).join("");
    const binding = `apiVersion: inlay.dev/v1alpha1\nkind: SecretBinding\nmetadata:\n  name: a\n  annotations:\n${annotations}`;
    const files = [{ name: "a.yaml", text: binding }];
    const { errors } = await validate({ files, crds: [], namespace: "default" });
    const [first] = errors;
    assert.deepEqual([errors.length, first?.severity, first?.reason], [1, "error", "TooLarge"]);
    assert.match(first?.message ?? "", /has \d{6} bytes as JSON, and Inlay allows 524288 \(limits\.bindingBytes\)/);
  });
});
