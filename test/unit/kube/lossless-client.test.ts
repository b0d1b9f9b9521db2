/** Each write is restricted to the version of the object for which it loses nothing. */
import assert from "node:assert/strict";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { LosslessClient } from "../../../src/kube/lossless-client.ts";
import type { Request } from "../../../src/kube/transport.ts";
import type { WriteVersions } from "../../../src/kube/write-versions.ts";
import { HARBOR } from "../resources.ts";

const gate = { mayWrite: () => true, wrote: () => {} };

function clientWith(assertKeepsAll: () => Promise<string | undefined>) {
  const bodies: unknown[] = [];
  const paths: string[] = [];
  const request = async <T>({ body = "null", path }: Request) => {
    bodies.push(JSON.parse(body));
    paths.push(path);
    return {} as T;
  };
  return { client: new LosslessClient({ request }, gate, { assertKeepsAll }), bodies, paths };
}

const writes = (client: LosslessClient) => [
  () => client.apply("me", HARBOR, "uid", {}, { fieldManager: "m", force: false }),
  () => client.jsonPatch("me", HARBOR, [{ op: "remove", path: "/a" }], "m"),
  () => client.delete("me", HARBOR, { metadata: { uid: "uid" } }),
  () => client.createObject("me", HARBOR, {}, "m"),
  () => client.mergeFields("me", HARBOR, {}, "m"),
];

describe("a write to an object", () => {
  it("is restricted to the version that was checked, or to the caller's", async () => {
    const { client, bodies } = clientWith(async () => "7");
    for (const write of writes(client)) await write();
    const [applied, patch, deletion, , merged] = bodies.splice(0) as [
      { metadata: object },
      object[],
      { preconditions: object },
      object,
      { metadata: object },
    ];
    assert.deepEqual(applied.metadata, { resourceVersion: "7", name: "harbor", uid: "uid", namespace: "registry" });
    assert.deepEqual(patch[0], { op: "replace", path: "/metadata/resourceVersion", value: "7" });
    assert.deepEqual(deletion.preconditions, { uid: "uid", resourceVersion: "7" });
    assert.deepEqual(merged.metadata, { resourceVersion: "7" });
    const leaves = { metadata: { resourceVersion: "6" } };
    await client.apply("me", HARBOR, "uid", leaves, { fieldManager: "m", force: false });
    await client.delete("me", HARBOR, { metadata: { uid: "uid", resourceVersion: "6" } });
    await client.mergeFields("me", HARBOR, leaves, "m");
    assert.deepEqual(JSON.stringify(bodies).match(/"resourceVersion":"\d"/g), Array(3).fill('"resourceVersion":"6"'));
  });

  it("is sent unchanged if it loses nothing in any version", async () => {
    const { client, bodies } = clientWith(async () => undefined);
    for (const write of writes(client)) await write();
    assert.doesNotMatch(JSON.stringify(bodies), /resourceVersion/);
  });

  it("stays a dry run", async () => {
    const { client, paths } = clientWith(async () => "7");
    await client.jsonPatch("me", HARBOR, [], "m", true);
    await client.createObject("me", HARBOR, {}, "m", true);
    for (const path of paths) assert.match(path, /dryRun=All/);
  });

  it("is checked for what it writes, at any position in a list", async () => {
    const written: (readonly object[])[] = [];
    const request = async <T>() => ({}) as T;
    const versions = {
      assertKeepsAll: async (...[, , what = []]: Parameters<WriteVersions["assertKeepsAll"]>) => {
        written.push(what);
        return undefined;
      },
    };
    const client = new LosslessClient({ request }, gate, versions);
    await client.apply("me", HARBOR, "uid", { spec: { a: "x" } }, { fieldManager: "m", force: false });
    const operations = [
      { op: "test" as const, path: "/spec/b", value: 1 },
      { op: "add" as const, path: "/spec/list/-", value: { a: "x" } },
      { op: "replace" as const, path: "/spec/list/12/a~1b", value: "y" },
      { op: "remove" as const, path: "/spec/c" },
    ];
    await client.jsonPatch("me", HARBOR, operations, "m");
    await client.createObject("me", HARBOR, { spec: { b: "x" } }, "m");
    await client.mergeFields("me", HARBOR, { spec: { c: "x" } }, "m");
    assert.deepEqual(written, [
      [{ spec: { a: "x" } }],
      [{ spec: { list: [{ a: "x" }] } }, { spec: { list: [{ "a/b": "y" }] } }],
      [{ spec: { b: "x" } }],
      [{ spec: { c: "x" } }],
    ]);
  });

  it("is not sent if it would lose fields", async () => {
    const { client, bodies } = clientWith(async () => {
      throw new Problem("VersionDropsFields", "it would");
    });
    for (const write of writes(client)) await assert.rejects(write(), { reason: "VersionDropsFields" });
    assert.deepEqual(bodies, []);
  });
});
