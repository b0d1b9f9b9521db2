/** What a target would write from the values of its sources, with every problem. */
import assert from "node:assert/strict";
import type { Field } from "../../../src/api/binding.ts";
import { allIn, attemptSync, Problem } from "../../../src/apimachinery/problem.ts";
import { checkEntry, checkTypes, evaluate, planIn } from "../../../src/targets/evaluate.ts";
import type { LiveSource } from "../../../src/transform/live-source.ts";
import { targetOf } from "../objects.ts";
import { secret } from "../transform/sources.ts";

const text = { type: "string" } as const;
const root = {
  type: "object",
  properties: { spec: { type: "object", properties: { a: text, b: text, c: text, count: { type: "integer" } } } },
} as const;
const schema = { root, resolve: () => undefined };

function evaluated(fields: object[], sources: Map<string, LiveSource | Problem>, isDue?: (field: Field) => boolean) {
  const entry = checkEntry(targetOf({ fields: fields as Field[] }), ["bucket", "lost"]);
  return evaluate(entry, sources, schema as never, isDue);
}

const of = (path: string, key: string, source = "bucket") => ({ path, from: { source, key } });
const BUCKET = new Map<string, LiveSource | Problem>([["bucket", secret({ key: "value" })]]);
const problemsOf = (evaluation: ReturnType<typeof evaluated>) => {
  const problem = attemptSync(() => planIn(evaluation));
  return problem instanceof Problem ? allIn(problem).map((each) => each.message) : [];
};

describe("the evaluation of a target", () => {
  it("has all problems of its fields, in their order", () => {
    const found = problemsOf(
      evaluated([{ path: "spec.a", template: "{{bucket.key" }, of("spec.x", "key"), of("spec.b", "key")], BUCKET),
    );
    assert.equal(found.length, 2);
    assert.match(found[0] ?? "", /^spec\.a: template 1, .* not well-formed/);
    assert.match(found[1] ?? "", /^spec\.x: the object has no such field/);
  });

  it("checks paths and types without values, also while a value is missing", () => {
    const typed = { ...of("spec.count", "gone"), as: "string" };
    assert.match(problemsOf(evaluated([typed], BUCKET))[0] ?? "", /^spec\.count: the field is an integer/);
    const entry = checkTypes(checkEntry(targetOf({ fields: [typed as Field] }), ["bucket"]), schema as never);
    assert.deepEqual(
      entry.recipes.map((each) => "problem" in each && each.problem.reason),
      ["TypeMismatch"],
    );
  });

  it("skips the fields that are not due, also beside one that the schema refuses", () => {
    const fields = [of("spec.a", "key"), of("spec.x", "key")];
    const due = evaluated(fields, BUCKET, ({ path }) => path !== "spec.a");
    assert.equal(problemsOf(due).length, 1);
    assert.match(problemsOf(due)[0] ?? "", /^spec\.x: the object has no such field/);
    assert.deepEqual(
      planIn(evaluated(fields, BUCKET, ({ path }) => path === "spec.a")).fields.map(({ path }) => String(path)),
      ["spec.a"],
    );
  });

  it("reports a source once that several fields need", () => {
    const denied = new Problem("VaultDenied", { what: "denied", source: "lost" });
    const sources = new Map([...BUCKET, ["lost", denied] as const]);
    const found = problemsOf(evaluated([of("spec.a", "k", "lost"), of("spec.b", "k", "lost")], sources));
    assert.deepEqual(found, ["spec.a: denied"]);
  });
});
