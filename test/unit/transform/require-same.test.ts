/** When sources are of one state, and what is said when they are not. */
import assert from "node:assert/strict";
import { Problem } from "../../../src/apimachinery/problem.ts";
import type { LiveSource } from "../../../src/transform/live-source.ts";
import { sourcesDiffer } from "../../../src/transform/require-same.ts";
import { absent, object, secret } from "./sources.ts";

const KEY = "example.com/rotation";
const marked = (name: string, value: string) =>
  secret({}, { description: `Secret registry/${name}`, annotations: { [KEY]: value } });
const differ = (...sources: (LiveSource | Problem)[]) =>
  sourcesDiffer(KEY, new Map(sources.map((source, n) => [`s${n}`, source])));

describe("sources", () => {
  it("are of one state when each carries the annotation with the same value", () => {
    assert.equal(differ(marked("a", "x"), object({}, { annotations: { [KEY]: "x" } })), undefined);
    assert.equal(differ(marked("a", "")), undefined);
    assert.equal(differ(marked("a", "x"), absent({ onMissing: "Wait", optional: true })), undefined);
  });

  it("are not when one does not carry it: it is named", () => {
    const problem = differ(
      marked("a", "x"),
      secret({}, { description: "Secret registry/b", annotations: { other: "x" } }),
    );
    assert.equal(problem?.reason, "SourceAnnotationMismatch");
    assert.match(problem?.message ?? "", /Secret registry\/b doesn't carry it/);
    assert.match(differ(secret({}, { annotations: {} }), secret({}))?.message ?? "", /don't carry it/);
  });

  it("are not when values differ: the sources are named, the values are not", () => {
    const message = differ(marked("a", "v-1"), marked("b", "v-2"), marked("c", "v-1"))?.message ?? "";
    assert.match(message, /differs between Secret registry\/a, Secret registry\/c and Secret registry\/b/);
    assert.ok(!message.includes("v-1") && !message.includes("v-2"));
  });

  it("are as unknown as one that could not be read or is not there", () => {
    assert.equal(differ(marked("a", "x"), new Problem("Forbidden", "no"))?.reason, "Forbidden");
    assert.equal(differ(marked("a", "x"), absent())?.reason, "SourceNotFound");
  });
});
