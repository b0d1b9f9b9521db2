/** What changes a digest, and what does not. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { JsonObject } from "../../../../src/apimachinery/objects.ts";
import { MissingValue } from "../../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../../src/apimachinery/secret-value.ts";
import { type DigestKey, type DigestScope, digestOf, digestsIn } from "../../../../src/rollout/digest/digest.ts";
import { ALL_KEYS } from "../../../../src/sources/uses.ts";
import type { LiveSource } from "../../../../src/transform/live-source.ts";
import { finish } from "../../../../src/workqueue/cpu-scheduler.ts";

const policy = { onMissing: "Wait", optional: false } as const;
const none = new SecretValue({});
const base = { description: "Secret registry/bucket", version: "1", policy, annotations: none, labels: none };

const data = (entries: Record<string, string | Uint8Array>): LiveSource => ({
  ...base,
  kind: "data",
  isSecret: true,
  data: new Map(Object.entries(entries).map(([key, value]) => [key, new SecretValue(Buffer.from(value))])),
});
type Data = Extract<LiveSource, { kind: "data" }>;
const object = (content: JsonObject): LiveSource => ({ ...base, kind: "object", object: new SecretValue(content) });
const absent: LiveSource = { ...base, kind: "absent", problem: new MissingValue("SourceNotFound", "", policy) };

const keyOf = (id: string, fill: number): DigestKey => ({ id, bytes: new SecretValue(new Uint8Array(32).fill(fill)) });
const key = keyOf("one", 1);
const bucket = ["", "Secret", "registry", "bucket"] as const;
const place = (more: Partial<DigestScope> = {}): DigestScope => ({
  binding: "registry/harbor-s3",
  source: bucket,
  key: "accessKeyID",
  ...more,
});
const digest = (source: LiveSource, more: Partial<DigestScope> = {}, by = key) =>
  finish(digestOf(by, place(more), source));
const all = { key: ALL_KEYS };

describe("a digest", () => {
  it("is the same in every release: a changed one would restart everything", () => {
    const source = data({ accessKeyID: "AKIA", secretAccessKey: "hush" });
    assert.deepEqual(
      [
        digest(source),
        digest(source, all),
        digest(absent),
        digest(object({ spec: { b: [1], a: "x" } }), { key: "spec" }),
      ],
      ["UFFvSduAiKqh_Mpuq34qzw", "LY3JRm9pwMjLx5Eh6aSRrw", undefined, "T_Btf6pXEIi1twMRbhYUBA"],
    );
  });

  it("is 128 bits in base64url", () => assert.match(digest(data({ accessKeyID: "AKIA" })) ?? "", /^[\w-]{22}$/));

  it("of two values is the same only if they are equal, for one key and for all keys", () => {
    const entries = fc.dictionary(fc.constantFrom("a", "b", "ab", "accessKeyID"), fc.uint8Array({ maxLength: 3 }));
    const same = (a: object, b: object) => {
      const sorted = (each: object) => JSON.stringify(Object.entries(each).sort());
      return sorted(a) === sorted(b);
    };
    fc.assert(
      fc.property(entries, entries, (a, b) => {
        const [left, right] = [data(a), data(b)];
        assert.equal(digest(left, all) === digest(right, all), same(a, b));
        const [one, other] = [{ a: a["a"] ?? "none" }, { a: b["a"] ?? "none" }];
        assert.equal(digest(left, { key: "a" }) === digest(right, { key: "a" }), same(one, other));
      }),
    );
  });

  it("of the keys that pass a filter changes with these keys alone", () => {
    const filtered = { key: '*{"include":["^tls"],"exclude":["key$"]}' };
    const before = data({ "tls.crt": "A", "tls.key": "B", other: "C" });
    const same = (changed: Record<string, string>) => digest(data(changed), filtered) === digest(before, filtered);
    assert.equal(digest(before, filtered)?.length, 22);
    assert.notEqual(digest(before, filtered), digest(data({ "tls.crt": "A" }), all));
    assert.ok(same({ "tls.crt": "A" }));
    assert.ok(same({ other: "x", "tls.key": "y", "tls.crt": "A", more: "z" }));
    assert.ok(!same({ "tls.crt": "x", "tls.key": "B", other: "C" }));
    assert.ok(!same({ "tls.crt": "A", "tls.ca": "A", "tls.key": "B", other: "C" }));
    assert.equal(digest(data({ other: "C" }), filtered), undefined);
    assert.throws(() => digest(before, { key: '*{"include":["("]}' }), { reason: "InvalidBinding" });
  });

  it("does not change with other keys, the order of keys, labels, annotations or versions", () => {
    const before = data({ accessKeyID: "AKIA", region: "eu" });
    const labels = new SecretValue({ app: "harbor" });
    const after = { ...data({ region: "us", accessKeyID: "AKIA" }), version: "2", labels, annotations: labels };
    assert.equal(digest(before), digest(after));
    const turned = data({ region: "eu", accessKeyID: "AKIA" });
    assert.equal(digest(before, all), digest(turned, all));
    assert.notEqual(digest(before, all), digest(after, all));
  });

  it("of equal bytes in a Secret and a ConfigMap depends on the place alone", () => {
    const source = data({ accessKeyID: "AKIA" });
    assert.equal(digest(source), digest({ ...source, isSecret: false } as LiveSource));
  });

  it("is unrelated to that of an equal value in another binding, source or key, or with another digest key", () => {
    const source = data({ accessKeyID: "same", other: "same" });
    const digests = [
      digest(source),
      digest(source, { key: "other" }),
      digest(source, { binding: "registry/other" }),
      digest(source, { source: ["", "Secret", "registry", "other"] }),
      digest(source, { source: ["", "Secret", "other", "bucket"] }),
      digest(source, { source: ["", "ConfigMap", "registry", "bucket"] }),
      digest(source, { source: ["example.com", "Secret", "registry", "bucket"] }),
      digest(source, {}, keyOf("one", 2)),
    ];
    assert.equal(new Set(digests).size, digests.length);
  });

  it("does not depend on how parts are joined", () => {
    const source = data({ c: "x" });
    assert.notEqual(
      digest(source, { binding: "a/b", source: ["", "Secret", "registry", "c"], key: "c" }),
      digest(source, { binding: "a", source: ["", "Secret", "registry", "bc"], key: "c" }),
    );
    assert.notEqual(digest(data({ a: "b", c: "d" }), all), digest(data({ a: "bc", d: "" }), all));
  });

  it("exists for an empty value, and not for a missing key or source", () => {
    for (const each of [absent, data({ other: "x" })]) assert.equal(digest(each), undefined);
    assert.notEqual(digest(data({ accessKeyID: "" })), undefined);
    assert.equal(digest(absent, all), undefined);
    assert.notEqual(digest(data({}), all), undefined);
  });

  it("of an object's field depends on that field, in whatever order its fields come", () => {
    const at = { key: "spec.hosts[name=web].port" };
    const hosts = (port: number | bigint, more: JsonObject = {}) =>
      object({ spec: { hosts: [{ name: "web", port }], ...more }, status: { ready: true } });
    assert.equal(digest(hosts(80), at), digest(hosts(80, { more: 1 }), at));
    assert.notEqual(digest(hosts(80), at), digest(hosts(81), at));
    assert.notEqual(digest(hosts(9007199254740993n), at), digest(hosts(9007199254740992n), at));
    assert.equal(
      digest(object({ spec: { a: 1, b: { c: [], d: null } } }), { key: "spec" }),
      digest(object({ spec: { b: { d: null, c: [] }, a: 1 } }), { key: "spec" }),
    );
    assert.notEqual(
      digest(object({ spec: { list: [1, 2] } }), { key: "spec" }),
      digest(object({ spec: { list: [2, 1] } }), { key: "spec" }),
    );
    assert.equal(digest(object({ spec: { host: null } }), { key: "spec.host" }), undefined);
  });

  it("of versions is one for each, up to the number that the status has room for", () => {
    const versions = (length: number): LiveSource => ({
      ...(data({ one: Array.from({ length: length - 1 }, (_, at) => `v${at}`).join("\n"), two: "v0" }) as Data),
      description: "SecretProviderClass shop/database",
      isVersions: true,
    });
    const most = digest(versions(256), all) ?? "";
    assert.equal(new Set(digestsIn(most)).size, 256);
    const message =
      /^the pods that mount the SecretProviderClass shop\/database have 257 versions of its objects, more than the 256 .*; replace the pods/;
    assert.throws(() => digest(versions(257), all), { reason: "InvalidBinding", retryPolicy: "OnChange", message });
  });

  it("of a large object is computed in steps", () => {
    const list = Array.from({ length: 1_000 }, (_, at) => ({ at }));
    const yields = [...digestOf(key, place({ key: "spec" }), object({ spec: { list } }))].length;
    assert.ok(yields >= list.length);
  });

  it("of a whole object does not depend on its metadata and status", () => {
    const whole = (version: string, host: string): JsonObject => ({
      metadata: { name: "harbor", resourceVersion: version },
      spec: { host },
      status: { seen: version },
    });
    assert.equal(digest(object(whole("1", "a")), all), digest(object(whole("2", "a")), all));
    assert.notEqual(digest(object(whole("1", "a")), all), digest(object(whole("1", "b")), all));
  });
});
