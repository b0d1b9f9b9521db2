/** Which values are behind the keys of a Secret that a binding writes. */
import assert from "node:assert/strict";
import type { Field, Target } from "../../../../src/api/binding.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { usesOfFields, writtenUses } from "../../../../src/rollout/discover/written-values.ts";
import { finish } from "../../../../src/workqueue/cpu-scheduler.ts";
import { bindingOf, targetOf } from "../../objects.ts";

const writing = (...fields: Field[]) => {
  const target = targetOf({ apiVersion: "v1", kind: "Secret", fields });
  const sources = [{ secret: { name: "a" } }, { secret: { name: "b" } }];
  return bindingOf({ spec: { sources, targets: [target] } });
};
const usesOf = (...fields: Field[]) => {
  const binding = writing(...fields);
  const ofFields = finish(usesOfFields(binding));
  assert.ok(!(ofFields instanceof Problem));
  return writtenUses(ofFields, binding.spec.targets[0] as Target);
};
/** Fields with templates that name so many different values together. */
const naming = (count: number) =>
  Array.from({ length: count / 100 }, (_, n) => {
    const template = Array.from({ length: 100 }, (_, at) => `{{a.k${n}x${at}}}`).join("");
    return { path: `data.k${n}`, template };
  });

describe("the values behind the keys of a Secret that is written", () => {
  it("are those of the keys of the same name, if all data is copied", () => {
    const uses = usesOf({ path: "data", from: { source: "a" } });
    assert.deepEqual(uses(["x", "y"]), ["a/x", "a/y"]);
    assert.deepEqual(uses(undefined), ["a/*"]);
  });

  it("are those of the fields that write the key, whatever their names are, and none for a key of other clients", () => {
    const uses = usesOf(
      { path: 'data["tls.crt"]', from: { source: "a", key: "cert" } },
      { path: "stringData.url", template: "{{a.user}}@{{b.host}}" },
      { path: "metadata.annotations.x", from: { source: "b", key: "other" } },
    );
    assert.deepEqual(uses(["tls.crt"]), ["a/cert"]);
    assert.deepEqual(uses(["url", "tls.crt"]), ["a/user", "b/host", "a/cert"]);
    assert.deepEqual(uses(["extra"]), []);
    assert.deepEqual(uses(undefined), ["a/cert", "a/user", "b/host"]);
  });

  it("are found in a step for each field, once for a spec", () => {
    const binding = writing(...naming(400));
    assert.deepEqual([[...usesOfFields(binding)].length, [...usesOfFields(binding)].length], [4, 0]);
  });

  it("have a limit, and the problem says what to do", () => {
    assert.ok(!(finish(usesOfFields(writing(...naming(5_000)))) instanceof Problem));
    const beyond = finish(usesOfFields(writing(...naming(5_100))));
    assert.ok(beyond instanceof Problem);
    assert.deepEqual([beyond.reason, beyond.retryPolicy], ["InvalidBinding", "OnChange"]);
    assert.match(beyond.message, /^spec\.rollout: .*more than 5,000 different values; .*split the binding$/);
  });

  it("are those of the keys that include and exclude permit", () => {
    const uses = usesOf({ path: "data", from: { source: "a", include: ["^tls"], exclude: ["key$"] } });
    assert.deepEqual(uses(["tls.crt", "tls.key", "password"]), ["a/tls.crt"]);
    assert.deepEqual(uses(undefined), ['a/*{"include":["^tls"],"exclude":["key$"]}']);
  });

  it("are all values of a text that contains all keys", () => {
    const uses = usesOf({ path: "data", from: { source: "a", key: "bundle" }, as: "json" });
    assert.deepEqual(uses(["x"]), ["a/bundle"]);
  });
});
