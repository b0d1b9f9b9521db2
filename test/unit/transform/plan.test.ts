/** What a target's fields become, and that it is all or nothing. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { Field } from "../../../src/model/binding.ts";
import { Problem } from "../../../src/model/problem.ts";
import type { LiveSource } from "../../../src/model/source-value.ts";
import { checkFields, planTarget } from "../../../src/transform/plan.ts";
import { object, secret } from "./sources.ts";

const SECRET = "hunter2-s3cr3t";
const sources = new Map<string, LiveSource | Problem>([
  ["bucket", secret({ id: SECRET, host: "s3", bytes: Uint8Array.of(0xc3, 0x28) })],
  ["svc", object({ spec: { ip: "10.0.0.1", ports: [{ port: 80 }], none: null, big: [2 ** 53] } })],
  ["lost", new Problem("SourceNotFound", "Secret registry/lost does not exist")],
]);

const key = (path: string, name = "id", source = "bucket"): Field => ({ path, from: { source, key: name } });
const field = (path: string, fieldPath: string, source = "svc"): Field => ({ path, from: { source, fieldPath } });
const template = (path: string, text: string): Field => ({ path, template: text });

const plan = (...fields: Field[]) =>
  planTarget(fields, sources).fields.map(({ path, value }) => [path.toString(), value.reveal()]);

function fails(fields: Field[], reason: Problem["reason"], advice = ""): void {
  assert.throws(
    () => planTarget(fields, sources),
    (problem: Problem) => {
      assert.equal(problem.reason, reason);
      assert.ok(problem.message.includes(advice), problem.message);
      assert.ok(!`${problem.stack}${problem.cause}`.includes(SECRET));
      return true;
    },
  );
}

describe("a plan", () => {
  it("holds every field's value under its canonical path", () => {
    assert.deepEqual(
      plan(
        key('["spec"].accesskey'),
        template('metadata.annotations["a/b"]', "https://{{bucket.host}}"),
        field("spec.ip", "spec.ip"),
        field("spec.port", "spec.ports[0].port"),
        field("spec.ports", "spec.ports"),
      ),
      [
        ["spec.accesskey", SECRET],
        ['metadata.annotations["a/b"]', "https://s3"],
        ["spec.ip", "10.0.0.1"],
        ["spec.port", 80],
        ["spec.ports", [{ port: 80 }]],
      ],
    );
  });

  it("carries any text of a key to the letter", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.constantFrom("12345", "true", 'a&b"c', "a\n", "\ufeffa", ""), fc.string({ unit: "grapheme" })),
        (text) => {
          const { fields } = planTarget([key("spec.a", "k", "s")], new Map([["s", secret({ k: text })]]));
          assert.equal(fields[0]?.value.reveal(), text);
        },
      ),
    );
  });

  it("can be printed without showing a value", () => {
    assert.ok(!JSON.stringify(planTarget([key("spec.a")], sources)).includes(SECRET));
  });

  it("is refused as a whole when one value is missing", () => {
    fails(
      [key("spec.a"), key("spec.b", "nothing")],
      "KeyNotFound",
      "spec.b: Secret registry/bucket has no key nothing",
    );
    fails(
      [key("spec.a"), field("spec.b", "spec.nothing")],
      "KeyNotFound",
      "Service registry/web has no field spec.nothing",
    );
    fails([field("spec.b", "spec.none")], "KeyNotFound");
    fails([key("spec.a"), template("spec.b", "{{bucket.nothing}}")], "KeyNotFound", "spec.b: ");
  });

  it("is refused with the problem of a source that could not be read", () => {
    for (const needy of [key("spec.a", "k", "lost"), field("spec.a", "b", "lost"), template("spec.a", "{{lost.k}}")]) {
      fails([needy], "SourceNotFound", "Secret registry/lost does not exist");
    }
    assert.deepEqual(plan(key("spec.a", "host")), [["spec.a", "s3"]]);
  });

  it("takes no bytes for text", () => {
    fails([key("spec.a", "bytes")], "NotUtf8", "key bytes of Secret registry/bucket is not UTF-8 text");
  });

  it("takes no integer that has lost its last digits", () => {
    fails([field("spec.a", "spec.big")], "TypeMismatch", "2^53");
  });

  it("takes keys of Secrets and fieldPaths of objects, and says which to write", () => {
    fails([key("spec.a", "ip", "svc")], "InvalidBinding", "write fieldPath instead of key");
    fails([field("spec.a", "id", "bucket")], "InvalidBinding", "write key instead of fieldPath");
  });

  it("tells what is wrong with the binding before it tells of a source", () => {
    const lost = key("spec.a", "k", "lost");
    fails([lost, key("spec.b..c")], "InvalidPath");
    fails([lost, key("status.a")], "ForbiddenPath");
    fails([lost, key("metadata.finalizers")], "ForbiddenPath");
    fails([lost, key("spec.a.b")], "InvalidBinding", "spec.a and spec.a.b overlap");
    fails([lost, template("spec.b", "{{#each a}}{{/each}}")], "InvalidTemplate", "spec.b: template 1:1");
    fails([lost, field("spec.b", "a..b")], "InvalidPath", "spec.b: ");
    fails(
      [lost, key("spec.b", "k", "other")],
      "InvalidBinding",
      "no source is called other; there is bucket, svc, lost",
    );
    fails([lost, template("spec.b", "{{other.k}}")], "InvalidBinding", "no source is called other");
  });

  it("writes each field once", () => {
    fails([key("spec.a"), key('["spec"].a')], "InvalidBinding", "overlap");
    fails([key("spec.a.b"), key("spec.a")], "InvalidBinding", "overlap");
    assert.equal(plan(key("spec.a"), key("spec.ab")).length, 2);
  });

  it("writes no elements of lists yet", () => {
    fails([key("spec.hosts[0].name")], "InvalidPath", "can't be written yet");
    fails([key("spec.hosts[name=web].host")], "InvalidPath", "can't be written yet");
  });

  it("can be checked by the names of the sources alone", () => {
    checkFields([key("spec.a"), template("spec.b", "{{lost.k}}")], ["bucket", "lost"]);
    assert.throws(() => checkFields([key("spec.a")], ["other"]), { reason: "InvalidBinding" });
  });
});
