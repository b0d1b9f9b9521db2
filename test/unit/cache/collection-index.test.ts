/** Which objects are in which collection, after any changes and in any order of queries. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { CachedObject } from "../../../src/cache/cached-object.ts";
import { CollectionIndex } from "../../../src/cache/stream.ts";
import type { PodReference } from "../../../src/workloads/pod-references.ts";
import type { Workload } from "../../../src/workloads/workload.ts";
import { workloadDataOf } from "../objects.ts";

/** The cached objects of a reflector, as an index uses them. */
class Store extends Map<string, CachedObject> {
  revision = 0;
}

const workload = (references: readonly PodReference[]): Workload => workloadDataOf({ references });
const seen = (...names: string[]): CachedObject => ({
  uid: "1",
  resourceVersion: "1",
  generation: 1,
  workload: workload(names.map((name) => ({ kind: "Secret", name, by: "env" as const }))),
});

describe("a collection index", () => {
  const key = fc.constantFrom("one/a", "one/b", "two/a", "two/b", "cluster");
  const state = fc.option(
    fc.uniqueArray(fc.constantFrom("bucket", "other", "a"), { maxLength: 3 }).map((names) => seen(...names)),
    { nil: undefined },
  );
  const collections = [
    "one/",
    "two/",
    "",
    ...["one/", "two/", ""].flatMap((place) => [`${place}/Secret/bucket`, `${place}/Secret/a`]),
  ];

  /** The same result without the index. */
  function membersOf(store: Store, collection: string): string[] {
    const [, place = "", name] = /^([^/]+\/|)(?:\/Secret\/(.*))?$/.exec(collection) ?? [];
    return [...store]
      .filter(([each]) => each.slice(0, each.indexOf("/") + 1) === place)
      .filter(([, { workload: own }]) => name === undefined || own?.references.some((each) => each.name === name))
      .map(([each]) => each)
      .toSorted();
  }

  it("returns for each collection the same objects as a scan of all objects", () => {
    // A change without a call is one of the first list, which streams do not report.
    const step = fc.record({ key, after: state, isTold: fc.boolean(), isAsked: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const [store, index] = [new Store(), new CollectionIndex()];
        for (const { key: each, after, isTold, isAsked } of steps) {
          const before = store.get(each);
          if (before === after) continue;
          if (after === undefined) store.delete(each);
          else store.set(each, after);
          store.revision++;
          if (isTold) index.changed(store, each, after, before);
          if (!isAsked) continue;
          for (const collection of collections)
            assert.deepEqual([...index.keysOf(collection, store)].toSorted(), membersOf(store, collection), collection);
        }
      }),
    );
  });

  it("reads only the changed object after a change", () => {
    const [store, index] = [new Store(), new CollectionIndex()];
    for (let n = 0; n < 1000; n++) store.set(`one/${n}`, seen(`secret-${n}`));
    let looks = 0;
    store.get = (each) => {
      looks++;
      return Map.prototype.get.call(store, each) as CachedObject | undefined;
    };
    assert.deepEqual([...index.keysOf("one//Secret/secret-7", store)], ["one/7"]);
    assert.equal(looks, 1000);
    store.revision++;
    index.changed(store, "one/7", seen("secret-8"), seen("secret-7"));
    assert.deepEqual([...index.keysOf("one//Secret/secret-8", store)], ["one/8", "one/7"]);
    assert.deepEqual([...index.keysOf("one//Secret/secret-7", store)], []);
    assert.equal(looks, 1000);
  });
});
