/** Which values have digests, and with which key. */
import assert from "node:assert/strict";
import type { RolloutStatus } from "../../../../src/api/rollout.ts";
import type { JsonObject } from "../../../../src/apimachinery/objects.ts";
import { SecretValue } from "../../../../src/apimachinery/secret-value.ts";
import { DigestCache, digestsOf } from "../../../../src/rollout/digest/values.ts";
import type { LiveSource } from "../../../../src/transform/live-source.ts";
import { finish } from "../../../../src/workqueue/cpu-scheduler.ts";

const PLACES = new Map([["s", { place: ["", "ConfigMap", "team", "s"] as const }]]);
const keyOf = (id: string) => ({ id, bytes: new SecretValue<Uint8Array>(Buffer.from(id.padEnd(32, "0"))) });
const none = new SecretValue({});
const base = { description: "s", version: "uid/1", policy: { onMissing: "Wait", optional: false } } as const;
const ofKeys = (keys: Record<string, string>): LiveSource => {
  const data = new Map(
    Object.entries(keys).map(([key, text]) => [key, new SecretValue<Uint8Array>(Buffer.from(text))]),
  );
  return { kind: "data", isSecret: false, ...base, data, annotations: none, labels: none };
};
const ofObject = (object: JsonObject): LiveSource => ({
  kind: "object",
  ...base,
  object: new SecretValue(object),
  annotations: none,
  labels: none,
});

const digests = (source: LiveSource, used: Iterable<string>) =>
  finish(digestsOf(keyOf("one"), "team/b", used, new Map([["s", source]]), PLACES));

describe("the values of a rollout", () => {
  it("have digests if they exist, for a key as well as a field", () => {
    const idsOf = (source: LiveSource, ...used: string[]) => Object.keys(digests(source, used));
    assert.deepEqual(idsOf(ofKeys({ a: "1" }), "s/a", "s/b", "s/*"), ["s/a", "s/*"]);
    const object = ofObject({ spec: { ip: "1", none: null, ports: [] } });
    assert.deepEqual(idsOf(object, "s/spec.ip", "s/spec.none", "s/spec.gone", "s/spec.ports"), [
      "s/spec.ip",
      "s/spec.ports",
    ]);
  });

  it("with filters share one effort", () => {
    const many = ofKeys(Object.fromEntries(Array.from({ length: 700 }, (_, n) => [`key-${n}`, ""])));
    const uses = Array.from({ length: 64 }, (_, n) => `s/*{"include":["^key-([0-9]+|other${n})$"]}`);
    assert.equal(Object.keys(digests(many, uses.slice(0, 4))).length, 4);
    assert.throws(() => digests(many, uses), { reason: "InvalidBinding", message: /takes too long/ });
  });

  it("share a number of bytes, however often filters and paths include the same ones", () => {
    const large = ofKeys({ a: "x".repeat(1024 ** 2) });
    const uses = Array.from({ length: 33 }, (_, n) => `s/*{"include":["^(a|${n})$"]}`);
    assert.equal(Object.keys(digests(large, uses.slice(0, 31))).length, 31);
    const refusal = {
      reason: "InvalidBinding",
      retryPolicy: "OnChange",
      message: /32 MiB together.*split the binding$/,
    };
    assert.throws(() => digests(large, uses), refusal);
    const names = Array.from({ length: 33 }, (_, n) => `spec${".x".repeat(n)}`);
    let nested: JsonObject = { text: "x".repeat(1024 ** 2) };
    for (let level = 0; level < 33; level++) nested = { x: nested };
    const object = ofObject({ spec: nested });
    assert.throws(
      () =>
        digests(
          object,
          names.map((path) => `s/${path}`),
        ),
      refusal,
    );
  });

  it("are computed in steps, one for each", () => {
    const used = ["s/a", "s/b", "s/c"];
    const work = digestsOf(keyOf("one"), "team/b", used, new Map([["s", ofKeys({ a: "1" })]]), PLACES);
    assert.equal([...work].length, 3);
  });

  it("keep the former key while a known value is missing, which could not be compared with another key", async () => {
    const keys = { primary: async () => keyOf("two"), byId: async (id: string) => keyOf(id) };
    const used = new Set(["s/a", "s/b"]);
    const all = digests(ofKeys({ a: "1", b: "2" }), used);
    const before: RolloutStatus = { digestKeyID: "one", revision: 0, digests: all };
    const known = (source: LiveSource) =>
      new DigestCache(keys, { steps: async (_, work) => finish(work) }).digests(
        "team/b",
        "",
        used,
        PLACES,
        { sources: new Map([["s", source]]), sourceMismatch: undefined },
        before,
      );
    const gone = await known(ofKeys({ a: "1" }));
    assert.deepEqual([gone.keyId, gone.former, gone.digests], ["one", undefined, { "s/a": all["s/a"] }]);
    const back = await known(ofKeys({ a: "1", b: "2" }));
    assert.deepEqual([back.keyId, back.former], ["two", all]);
  });
});
