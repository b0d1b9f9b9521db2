/** Where more users can read a value of a Secret than in the Secret, and the note about it. */
import assert from "node:assert/strict";
import type { Field, SecretBinding } from "../../../src/api/binding.ts";
import { checkFields } from "../../../src/transform/plan.ts";
import { assertAcknowledged, readableCopies } from "../../../src/transform/readable-copies.ts";
import { schemaIn } from "../../../src/transform/schema-check.ts";
import { bindingOf } from "../objects.ts";

const binding = (acknowledge: SecretBinding["spec"]["acknowledge"] = []) =>
  bindingOf({
    metadata: { namespace: "team", name: "b" },
    spec: { sources: [{ secret: { name: "bucket" } }, { configMap: { name: "place" } }], acknowledge },
  });
const own = new Map([["bucket", "team"]]);
const theirs = new Map([["bucket", "other"]]);
const kindOf = (group: string, kind: string, plural: string) => ({
  resource: { group, version: "v1", kind, plural, namespaced: true, hasStatus: false },
  namespace: "team",
});
const harbor = kindOf("goharbor.io", "HarborCluster", "harborclusters");
const secret = kindOf("", "Secret", "secrets");
const from = (path: string, source = "bucket"): object => ({ path, from: { source, key: "k" } });
const template = (path: string, text: string): object => ({ path, template: text });

function copies(fields: object[], at: typeof harbor = harbor, schema?: object) {
  const recipes = checkFields(fields as Field[], ["bucket", "place"]);
  return readableCopies(binding(), own, recipes, at, schema && schemaIn(schema, () => undefined));
}
const pathsOf = (...args: Parameters<typeof copies>) => copies(...args)?.paths;

describe("a readable copy", () => {
  it("is every field outside of Secrets that may contain a value of a Secret", () => {
    const fields = [
      from("spec.a"),
      from("spec.b", "place"),
      template("spec.c", "{{place.x}}{{#if bucket.x}}{{bucket.y}}{{/if}}"),
      template("spec.d", "{{place.x}}"),
    ];
    assert.deepEqual(pathsOf(fields), ["spec.a", "spec.c"]);
    assert.deepEqual(pathsOf(fields, kindOf("", "ConfigMap", "configmaps")), ["spec.a", "spec.c"]);
    assert.deepEqual(pathsOf(fields, kindOf("example.com", "Secret", "secrets")), ["spec.a", "spec.c"]);
    assert.equal(pathsOf([from("spec.b", "place")]), undefined);
    assert.equal(pathsOf([]), undefined);
  });

  it("is in a Secret only if that is in another namespace", () => {
    assert.equal(pathsOf([from("data.a")], secret), undefined);
    assert.deepEqual(pathsOf([from("data.a")], { ...secret, namespace: "other" }), ["data.a"]);
    assert.equal(pathsOf([from("data.a", "place")], { ...secret, namespace: "other" }), undefined);
  });

  it("is in a Secret of the binding's own namespace too if the source is in another one", () => {
    const recipes = checkFields([from("data.a")] as Field[], ["bucket"]);
    assert.deepEqual(readableCopies(binding(), theirs, recipes, secret)?.paths, ["data.a"]);
    assert.equal(readableCopies(binding(), theirs, recipes, { ...secret, namespace: "other" }), undefined);
  });

  it("has a note with its readers, the alternatives, and only a few paths", () => {
    assert.equal(
      copies([from("spec.a")])?.note,
      "all users who may read the HarborCluster can read values of Secrets at spec.a; if you intend this, set spec.acknowledge: [ReadableCopies]",
    );
    const many = copies([1, 2, 3, 4, 5].map((n) => from(`spec.f${n}`)))?.note ?? "";
    assert.match(many, /at spec\.f1, spec\.f2, spec\.f3 and 2 more;/);
    assert.match(
      copies([from("data.a")], { ...secret, namespace: "other" })?.note ?? "",
      /the copy in its namespace can read/,
    );
    const text = { type: "string" };
    const spec = { type: "object", properties: { token: text, tokenSecretRef: { type: "object" }, host: text } };
    const hinted = copies([from("spec.token"), from("spec.host")], harbor, { type: "object", properties: { spec } });
    assert.match(hinted?.note ?? "", / \(set spec\.tokenSecretRef to a reference .* spec\.token\); /);
  });

  it("is not reported if the binding acknowledges it", () => {
    const recipes = checkFields([from("spec.a")] as Field[], ["bucket"]);
    assert.ok(readableCopies(binding([]), own, recipes, harbor));
    assert.equal(readableCopies(binding(["ReadableCopies"]), own, recipes, harbor), undefined);
  });

  it("is refused with the command that acknowledges it, if the installation requires that", () => {
    const copies = { paths: [], note: "so it is" };
    assert.throws(() => assertAcknowledged(binding(), copies, { requires: () => true }), {
      reason: "NotAcknowledged",
      message: /^so it is\. .*kubectl patch secretbinding b -n team --type=merge -p '\{"spec":\{"acknowledge":/,
    });
    assertAcknowledged(binding(), copies, { requires: () => false });
    assertAcknowledged(binding(), undefined, { requires: () => true });
  });
});
