/** Which reads of a source share a request, and how long the result is cached. */
import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { KubeObject, ObjectRef } from "../../../src/apimachinery/objects.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { SharedReads } from "../../../src/sources/shared-reads.ts";
import { fakeClock, settled } from "../clock.ts";
import { fakeClient } from "../fakes.ts";
import { CONFIGMAPS, SECRETS } from "../resources.ts";

const [INLAY, OTHER] = ["system:serviceaccount:registry:inlay", "system:serviceaccount:registry:other"];
setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");
const BUCKET: ObjectRef = { resource: SECRETS, namespace: "registry", name: "bucket" };

describe("reads of sources", () => {
  const clock = fakeClock();
  /** Such as `inlay bucket 7`. */
  let requests: string[];
  /** The answer of the API server, by default the object in the requested version. */
  let answer: (ref: ObjectRef, seen: string | undefined) => KubeObject | Promise<KubeObject>;
  let reads: SharedReads;
  /** The version that the watch has shown, once. */
  let shown: string | undefined;
  const objectOf = ({ name }: ObjectRef, resourceVersion = "9", text = ""): KubeObject => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, uid: "u", resourceVersion },
    data: { text },
  });

  beforeEach(() => {
    requests = [];
    answer = objectOf;
    shown = undefined;
    const take = async (_: string, ref: ObjectRef, version: string) => {
      if (version !== shown) return undefined;
      shown = undefined;
      return objectOf(ref, version);
    };
    const get = async (identity: string, ref: ObjectRef, seen?: string) => {
      requests.push(`${identity.split(":").at(-1)} ${ref.namespace}/${ref.name} ${seen}`);
      return answer(ref, seen);
    };
    reads = new SharedReads(fakeClient({ get }), { take }, () => Date.now());
  });
  const named = (name: string): ObjectRef => ({ ...BUCKET, name });

  it("share one request for the same account and version, at the same time or in sequence", async () => {
    const together = await Promise.all(Array.from({ length: 100 }, () => reads.get(INLAY, BUCKET, "7")));
    const later = await reads.get(INLAY, BUCKET, "7");
    assert.deepEqual(requests, ["inlay registry/bucket 7"]);
    for (const each of [...together, later]) assert.deepEqual(each, objectOf(BUCKET, "7"));
  });

  it("are separate requests for another account, version, object or kind", async () => {
    const asked: [string, ObjectRef, string][] = [
      [INLAY, BUCKET, "7"],
      [OTHER, BUCKET, "7"],
      [INLAY, BUCKET, "8"],
      [INLAY, named("other"), "7"],
      [INLAY, { ...BUCKET, namespace: "elsewhere" }, "7"],
      [INLAY, { ...BUCKET, resource: CONFIGMAPS }, "7"],
    ];
    for (const each of asked) await reads.get(...each);
    assert.equal(requests.length, asked.length);
  });

  it("need no request for an object that the watch has shown, which is shared for half a second", async () => {
    shown = "7";
    for (const ms of [0, 499]) {
      await clock.pass(ms);
      assert.deepEqual(await reads.get(INLAY, BUCKET, "7"), objectOf(BUCKET, "7"));
    }
    assert.deepEqual(requests, []);
    await clock.pass(1);
    await reads.get(INLAY, BUCKET, "7");
    assert.deepEqual(requests, ["inlay registry/bucket 7"]);
  });

  it("are separate requests without a watched version", async () => {
    await Promise.all([1, 2].map(() => reads.get(INLAY, BUCKET)));
    await reads.get(INLAY, BUCKET, "7");
    assert.deepEqual(
      requests,
      ["undefined", "undefined", "7"].map((seen) => `inlay registry/bucket ${seen}`),
    );
  });

  it("fail together, and are repeated after that", async () => {
    answer = async () => {
      throw new ApiError("GET", 403, "Forbidden");
    };
    const failed = await Promise.allSettled([1, 2].map(() => reads.get(INLAY, BUCKET, "7")));
    assert.deepEqual([failed.map(({ status }) => status), requests.length], [["rejected", "rejected"], 1]);
    answer = objectOf;
    await reads.get(INLAY, BUCKET, "7");
    assert.equal(requests.length, 2);
  });

  it("share another version than the requested one only until the answer arrives", async () => {
    answer = (ref) => objectOf(ref, "8");
    const found = await Promise.all([1, 2].map(() => reads.get(INLAY, BUCKET, "7")));
    assert.deepEqual([found.map(({ metadata }) => metadata.resourceVersion), requests.length], [["8", "8"], 1]);
    for (const seen of ["7", "8"]) await reads.get(INLAY, BUCKET, seen);
    assert.equal(requests.length, 3);
  });

  it("are shared for one second after the request was sent", async () => {
    for (let turn = 0; turn < 10; turn++) {
      await reads.get(INLAY, BUCKET, "7");
      await clock.pass(100);
    }
    assert.equal(requests.length, 1);
    await reads.get(INLAY, BUCKET, "7");
    assert.equal(requests.length, 2);
  });

  it("are not shared with later reads while the answer is slow, and the newer answer is cached", async () => {
    const slow = Promise.withResolvers<KubeObject>();
    answer = () => slow.promise;
    const first = reads.get(INLAY, BUCKET, "7");
    await clock.pass(1_000);
    answer = (ref, seen) => objectOf(ref, seen, "newer");
    await reads.get(INLAY, BUCKET, "7");
    slow.resolve(objectOf(BUCKET, "7", "older"));
    assert.deepEqual(await first, objectOf(BUCKET, "7", "older"));
    await settled();
    assert.deepEqual(await reads.get(INLAY, BUCKET, "7"), objectOf(BUCKET, "7", "newer"));
    assert.equal(requests.length, 2);
  });

  it("of large objects are shared until the answer arrives", async () => {
    answer = (ref, seen) => objectOf(ref, seen, "x".repeat(256 * 1024));
    await Promise.all([1, 2].map(() => reads.get(INLAY, BUCKET, "7")));
    assert.equal(requests.length, 1);
    await reads.get(INLAY, BUCKET, "7");
    assert.equal(requests.length, 2);
  });

  it("are cached up to 4 MiB, and the oldest are evicted", async () => {
    answer = (ref, seen) => objectOf(ref, seen, "x".repeat(255 * 1024));
    const names = Array.from({ length: 20 }, (_, n) => `large-${n}`);
    for (const name of names) await reads.get(INLAY, named(name), "7");
    requests = [];
    for (const name of names.toReversed()) await reads.get(INLAY, named(name), "7");
    assert.deepEqual(
      requests,
      names
        .slice(0, 4)
        .toReversed()
        .map((name) => `inlay registry/${name} 7`),
    );
  });

  it("leave nothing in memory a second after the request", async () => {
    const held = async () => {
      await settled();
      collectGarbage();
      return object.deref() !== undefined;
    };
    const object = new WeakRef(await reads.get(INLAY, BUCKET, "7"));
    assert.equal(await held(), true);
    await clock.pass(1_000);
    assert.equal(await held(), false);
  });
});
