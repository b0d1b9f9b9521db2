/** How a rejected write is explained: by the fields in the answer, or by a dry run of each field alone. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonObject } from "../../../src/apimachinery/objects.ts";
import type { Problem } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { decide } from "../../../src/apply/decide.ts";
import { refusal, WRITE_VERBS } from "../../../src/kube/access-error.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { CONTROLLER } from "../../../src/kube/identity.ts";
import { explainFields } from "../../../src/targets/rejection.ts";
import { Rejections } from "../../../src/targets/rejections.ts";
import { entry, liveObject, OURS, shape } from "../apply/managed.ts";
import { contextOf, dependenciesOf, fakeClient } from "../fakes.ts";
import { bindingOf, recordOf } from "../objects.ts";
import { HARBOR } from "../resources.ts";

const MARKER = "hunter2-s3cr3t";
const answer = (status: number, message: string, causes: object[] = []) =>
  ApiError.fromAnswer("PATCH /x", status, JSON.stringify({ reason: "Invalid", message, details: { causes } }));
const denied = answer(
  422,
  `harborclusters.goharbor.io "harbor" is forbidden: ValidatingAdmissionPolicy 'keys' with binding 'all' denied request: ${MARKER}`,
);
const invalid = (...fields: string[]) =>
  answer(
    422,
    MARKER,
    fields.map((field) => ({ field, reason: "FieldValueInvalid", message: `Invalid value: "${MARKER}"` })),
  );

/** What the API server answers to a dry run with these fields of the spec; undefined if it accepts them. */
type Rule = (spec: JsonObject) => ApiError | undefined;

class Case {
  /** The specs of all dry runs. */
  readonly tried: JsonObject[] = [];
  now = 0;
  generation: number | undefined = 1;
  resourceVersion = "1";
  sourceRevisions = "1";
  list: readonly string[];
  rule: Rule;
  readonly #rejections = new Rejections(() => this.now);

  constructor(rule: Rule, fields: readonly string[] = ["a", "b", "c"]) {
    this.rule = rule;
    this.list = fields;
  }

  async explain(error: ApiError, inList = false): Promise<Problem> {
    const kept = { spec: { a: "old", ...(inList && { list: [{ a: "1", b: "2" }] }) } };
    const object = liveObject(kept, [entry(OURS, ["spec.a"])]);
    const { generation, resourceVersion, sourceRevisions } = this;
    const metadata = { ...object.metadata, resourceVersion };
    const live = { ...object, metadata: { ...metadata, ...(generation !== undefined && { generation }) } };
    const client = fakeClient({
      get: async () => live,
      apply: async (_i: string, _r: object, _u: string, leaves: JsonObject, how: { dryRun?: string }) => {
        assert.equal(how.dryRun, "metadata");
        return this.#answer(leaves["spec"] as JsonObject);
      },
      jsonPatch: async (_i: string, _r: object, operations: { path: string }[], manager: string, dryRun?: boolean) => {
        assert.deepEqual([dryRun, manager], [true, OURS]);
        return this.#answer(Object.fromEntries(operations.map(({ path }) => [path.split("/").at(-1), "new"])));
      },
    });
    const deps = dependenciesOf({ client, rejections: this.#rejections, schemas: { of: async () => undefined } });
    const fields = this.list.map((name) => ({
      path: FieldPath.parse(inList ? `spec.list[0].${name}` : `spec.${name}`),
      value: new SecretValue(MARKER),
      fromSecret: true,
    }));
    const desired = { plan: { fields, omitted: [] }, shape: shape(), fieldManager: OURS, onConflict: "Fail" as const };
    const record = recordOf({ uid: "uid-1", paths: ["spec.a"] });
    const decision = decide(desired, live, record);
    const problem = refusal(error, { identity: CONTROLLER, ref: HARBOR, verbs: WRITE_VERBS }, "patch");
    const write = { ref: HARBOR, live, desired, decision, record };
    const explained = await explainFields({ ...contextOf(deps, bindingOf(), ""), sourceRevisions }, write, problem);
    assert.ok(!explained.message.includes(MARKER), explained.message);
    return explained;
  }

  #answer(spec: JsonObject) {
    this.tried.push({ ...spec });
    const error = this.rule(spec);
    if (error !== undefined) throw error;
    return liveObject({});
  }
}

/** How many dry runs the explanation takes. */
async function triesOf(rejected: Case, error: ApiError): Promise<number> {
  rejected.tried.length = 0;
  await rejected.explain(error);
  return rejected.tried.length;
}

const starts = ({ message }: Problem, text: string) => assert.ok(message.startsWith(text), message);

describe("a rejected write", () => {
  it("of several fields names the field that is refused alone, with the policy", async () => {
    const one = new Case(({ b }) => (b === undefined ? undefined : denied));
    const problem = await one.explain(denied);
    assert.deepEqual([problem.reason, problem.retryPolicy], ["Rejected", "Slow"]);
    starts(problem, "spec.b is refused: ValidatingAdmissionPolicy keys with binding all denied the request to patch ");
    // Each try keeps what the binding owns already.
    assert.deepEqual(one.tried, [{ a: MARKER }, { a: "old", b: MARKER }, { a: "old", c: MARKER }]);
  });

  it("names all fields that are refused alone", async () => {
    const two = new Case(({ a, b }) => (a === MARKER || b !== undefined ? denied : undefined));
    starts(await two.explain(denied), "spec.a is refused; spec.b is refused: ");
  });

  it("says that the fields are refused only together", async () => {
    const together = new Case(() => undefined);
    starts(await together.explain(denied), "spec.a, spec.b, spec.c are accepted one by one, but not together: ");
    const around = new Case(() => undefined);
    starts(
      await around.explain(invalid("spec")),
      "spec.a, spec.b, spec.c are accepted one by one, but not together; spec is not valid: ",
    );
  });

  it("sends no dry run if the answer names the field, or there is only one field", async () => {
    for (const [fields, error, text] of [
      [["a", "b"], invalid("spec.b"), "spec.b is not valid: the API server refused to patch HarborCluster "],
      [["b"], denied, "spec.b is refused: ValidatingAdmissionPolicy keys "],
      [["b"], invalid("spec.other"), "another field, which the binding does not write, is not valid: "],
    ] as const) {
      const named = new Case(() => denied, fields);
      starts(await named.explain(error), text);
      assert.deepEqual(named.tried, []);
    }
  });

  it("names the field whose dry run breaks the same rule around it, not another one", async () => {
    const rule = new Case(({ b, c }) => (b ? invalid("spec") : c ? invalid("spec.x") : undefined));
    starts(await rule.explain(invalid("spec")), "spec.b is refused, because spec is not valid: ");
    const other = new Case(({ c }) => (c ? invalid("spec.x") : undefined));
    starts(await other.explain(invalid("spec")), "spec is not valid: ");
  });

  it("does not report what is only missing because a dry run has no other field", async () => {
    const parts = new Case(({ b, c }) => (b || c ? invalid("spec", "spec.other") : undefined));
    starts(
      await parts.explain(invalid("spec")),
      "spec.b is refused, because spec is not valid; spec.c is refused, because",
    );
  });

  it("falls back to what the answer says if a webhook does not support dry runs, or a try fails otherwise", async () => {
    for (const error of [
      answer(400, 'admission webhook "hook.example.com" does not support dry run'),
      answer(409, "conflict"),
      new ApiError("PATCH /x", 0, "ECONNRESET"),
      answer(429, "busy"),
      answer(500, "broken"),
      answer(503, "starting"),
    ]) {
      const unknown = new Case(() => error);
      starts(await unknown.explain(denied), "ValidatingAdmissionPolicy keys with binding all denied ");
      assert.equal(unknown.tried.length, 1);
    }
  });

  it("of fields in a list that is written by JSON Patch is tried in the same way", async () => {
    const list = new Case(({ b }) => (b === undefined ? undefined : denied), ["a", "b"]);
    starts(await list.explain(denied, true), "spec.list[0].b is refused: ");
    assert.equal(list.tried.length, 2);
  });

  it("tries at most twenty fields", async () => {
    const many = new Case(
      () => undefined,
      Array.from({ length: 30 }, (_, n) => `f${n}`),
    );
    starts(await many.explain(denied), "none of the first 20 of 30 changed fields is refused alone: ");
    assert.equal(many.tried.length, 20);
  });

  it("is not tried again until the object, the answer or ten minutes change that, and a minute has passed", async () => {
    const again = new Case(({ b }) => (b === undefined ? undefined : denied));
    const count = (error: ApiError) => triesOf(again, error);
    assert.deepEqual([await count(denied), await count(denied)], [3, 0]);
    again.generation = 2;
    again.now += 59_000;
    assert.equal(await count(denied), 0);
    again.now += 1_000;
    assert.deepEqual([await count(denied), await count(denied)], [3, 0]);
    assert.equal(await count(invalid("spec")), 0);
    again.now += 60_000;
    assert.deepEqual([await count(invalid("spec")), await count(invalid("spec"))], [3, 0]);
    again.now += 599_000;
    assert.equal(await count(invalid("spec")), 0);
    again.now += 1_000;
    assert.equal(await count(invalid("spec")), 3);
  });

  it("is tried again at once if the binding or a source has changed", async () => {
    const edited = new Case(({ b }) => (b === undefined ? undefined : denied));
    assert.equal(await triesOf(edited, denied), 3);
    edited.sourceRevisions = "2";
    edited.rule = ({ c }) => (c === undefined ? undefined : denied);
    starts(await edited.explain(denied), "spec.c is refused: ");
  });

  it("for another reason is not explained by the trial for the first one", async () => {
    const other = new Case(({ b }) => (b === undefined ? undefined : denied));
    starts(await other.explain(denied), "spec.b is refused: ");
    starts(await other.explain(invalid("spec")), "spec is not valid: ");
  });

  it("is not tried again because a webhook writes another text each time, or a heartbeat changes the object", async () => {
    const texts = (text: string) =>
      answer(422, MARKER, [{ field: "spec", reason: "FieldValueInvalid", message: text }]);
    const webhook = new Case(() => undefined);
    webhook.generation = undefined;
    assert.equal(await triesOf(webhook, texts("at 10:00")), 3);
    webhook.now += 120_000;
    webhook.resourceVersion = "2";
    assert.equal(await triesOf(webhook, texts("at 10:02")), 0);
  });

  it("is tried again after a minute if a try had no answer", async () => {
    const busy = new Case(() => answer(503, "starting"));
    assert.deepEqual([await triesOf(busy, denied), await triesOf(busy, denied)], [1, 0]);
    busy.now += 60_000;
    busy.rule = ({ b }) => (b === undefined ? undefined : denied);
    starts(await busy.explain(denied), "spec.b is refused: ");
  });

  it("is not explained if it has another reason", async () => {
    const outage = new Case(() => undefined);
    const problem = await outage.explain(answer(503, "x"));
    assert.equal(problem.reason, "Unavailable");
    assert.deepEqual(outage.tried, []);
  });
});
