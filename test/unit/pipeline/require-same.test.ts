/** When sources belong together, and the message if they don't. */
import assert from "node:assert/strict";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { sourcesDiffer } from "../../../src/pipeline/compile.ts";
import type { LiveSource } from "../../../src/transform/live-source.ts";
import { absent, object, secret } from "../transform/sources.ts";

const KEY = "example.com/rotation";
const marked = (name: string, value: string) =>
  secret({}, { description: `Secret registry/${name}`, annotations: { [KEY]: value } });
const differ = (...sources: (LiveSource | Problem)[]) =>
  sourcesDiffer(KEY, new Map(sources.map((source, n) => [`s${n}`, source])));

describe("sources", () => {
  it("belong together if each has the annotation with the same value", () => {
    assert.equal(differ(marked("a", "x"), object({}, { annotations: { [KEY]: "x" } })), undefined);
    assert.equal(differ(marked("a", "")), undefined);
    assert.equal(differ(marked("a", "x"), absent({ onMissing: "Wait", optional: true })), undefined);
  });

  it("don't if one has no such annotation: the message names it", () => {
    const problem = differ(
      marked("a", "x"),
      secret({}, { description: "Secret registry/b", annotations: { other: "x" } }),
    );
    assert.equal(problem?.reason, "SourceAnnotationMismatch");
    assert.match(problem?.message ?? "", /Secret registry\/b doesn't have it/);
    assert.match(differ(secret({}, { annotations: {} }), secret({}))?.message ?? "", /don't have it/);
  });

  it("don't if the values differ: the message names the sources, not the values", () => {
    const message = differ(marked("a", "v-1"), marked("b", "v-2"), marked("c", "v-1"))?.message ?? "";
    assert.match(message, /differs between Secret registry\/a, Secret registry\/c and Secret registry\/b/);
    assert.ok(!message.includes("v-1") && !message.includes("v-2"));
  });

  it("give the problem of one that is missing or could not be read", () => {
    assert.equal(differ(marked("a", "x"), new Problem("Forbidden", "no"))?.reason, "Forbidden");
    assert.equal(differ(marked("a", "x"), absent())?.reason, "SourceNotFound");
  });
});
