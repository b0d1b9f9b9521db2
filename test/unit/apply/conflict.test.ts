/** A conflict says why another manager owns the field, and what helps. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonObject, JsonValue } from "../../../src/apimachinery/objects.ts";
import type { Problem } from "../../../src/apimachinery/problem.ts";
import { conflict, contestedField } from "../../../src/apply/conflict.ts";
import { shapeOf } from "../../../src/transform/target-shape.ts";
import { entry, liveObject, shape } from "./managed.ts";

interface Case {
  readonly path?: string;
  readonly live?: JsonObject;
  readonly operation?: "Apply" | "Update";
  readonly defaults?: Record<string, JsonValue>;
}

function reported({
  path = "spec.host",
  live = { spec: { host: "localhost" } },
  operation = "Update",
  defaults = {},
}: Case): Problem {
  const object = liveObject(live, [entry("kubectl-create", [path], { operation })]);
  const held = FieldPath.parse(path);
  return conflict([contestedField(held, held, "kubectl-create", object, shape({}, [], [], defaults))]);
}

describe("a conflict", () => {
  it("with a manager that set the field names it, and both ways to solve it", () => {
    const { reason, message } = reported({});
    assert.equal(reason, "Conflict");
    assert.equal(
      message,
      'spec.host belongs to "kubectl-create"; nothing was written. Remove the field from what that manager applies, or set onConflict: Force on the target to take it over',
    );
  });

  it("with a backup tool says that it restored the object, and how to take the field over", () => {
    const object = liveObject({ spec: { host: "a" } }, [
      entry("velero-server", ["spec.host"], { operation: "Update" }),
    ]);
    const held = FieldPath.parse("spec.host");
    const { message } = conflict([contestedField(held, held, "velero-server", object, shape())]);
    assert.match(message, /^spec\.host belongs to "velero-server" since it restored the object from a backup; .*Force/);
    assert.doesNotMatch(message, /Remove the field/);
  });

  it("about a default does not ask to remove a field that the manager does not set", () => {
    for (const defaults of [{ "spec.host": "localhost" }, { spec: { host: "localhost" } }]) {
      const { reason, message } = reported({ defaults });
      assert.equal(reason, "Conflict");
      assert.match(
        message,
        /^spec\.host belongs to "kubectl-create" only because the API server filled in the default/,
      );
      assert.match(message, /onConflict: Force/);
      assert.doesNotMatch(message, /Remove/);
    }
  });

  it("is an ordinary one if the value is no longer the default, or the manager applies it", () => {
    for (const some of [{ live: { spec: { host: "other" } } }, { operation: "Apply" as const }])
      assert.match(reported({ ...some, defaults: { "spec.host": "localhost" } }).message, /Remove the field/);
  });

  it("about data of an immutable Secret is Immutable, and does not advise to take it over", () => {
    const { reason, message } = reported({ path: "data.a", live: { immutable: true, data: { a: "eA==" } } });
    assert.equal(reason, "Immutable");
    assert.match(
      message,
      /^data\.a belongs to "kubectl-create" and can't be changed .* Force would not help\. Delete the object/,
    );
  });
});

describe("a field", () => {
  const rules = (...texts: string[]) => ({ "x-kubernetes-validations": texts.map((rule) => ({ rule })) });
  const isImmutable = (own: string[], parents: string[] = [], roots: string[] = []) => {
    const field = { type: "string" as const, ...rules(...own) };
    const spec = { type: "object" as const, properties: { a: field }, ...rules(...parents) };
    const root = { type: "object" as const, properties: { spec }, ...rules(...roots) };
    return shapeOf({ root, resolve: () => undefined }).isImmutable(FieldPath.parse("spec.a"));
  };

  it("is immutable by a rule at it, or at an object around it", () => {
    assert.ok(isImmutable(["self == oldSelf"]));
    assert.ok(isImmutable([], ["oldSelf.a==self.a"]));
    assert.ok(isImmutable([], ["self == oldSelf"]));
    assert.ok(isImmutable([], ["!has(oldSelf.a) || self.a == oldSelf.a"]));
    assert.ok(isImmutable([], ["!has(oldSelf.a) || has(self.a) && self.a == oldSelf.a"]));
    assert.ok(isImmutable([], [], ["has(self.spec.a) && self.spec.a == oldSelf.spec.a"]));
  });

  it("is not immutable by a rule that allows some changes, or about another field", () => {
    assert.ok(!isImmutable([]));
    assert.ok(!isImmutable(["self >= oldSelf"]));
    assert.ok(!isImmutable([], ["self.b == oldSelf.b"]));
    assert.ok(!isImmutable([], ["self.a == oldSelf.a || self.b == 'open'"]));
    assert.ok(!isImmutable(["self == oldSelf && size(self) > 0 || oldSelf == ''"]));
    assert.ok(!isImmutable(["oldSelf == '' || size(self) > 0 && self == oldSelf"]));
    assert.ok(!isImmutable([], ["self.b == 'open' ? true : size(self.a) > 0 && self.a == oldSelf.a && true"]));
    assert.ok(!isImmutable([], ["!(self.b == 'closed' && self.a == oldSelf.a && self.c == 'new')"]));
  });
});
