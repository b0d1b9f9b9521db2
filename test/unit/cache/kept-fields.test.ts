/** The fields that a stream keeps of the objects of a namespace. */
import assert from "node:assert/strict";
import type { CachedObject } from "../../../src/cache/cached-object.ts";
import { KeptFields, KeptTotals } from "../../../src/cache/stream.ts";

const MOST = 10_000;
const object = (uid: string, length: number): CachedObject => ({
  uid,
  resourceVersion: "1",
  generation: 1,
  fields: { spec: { text: "x".repeat(length) } },
});

describe("the kept fields of objects", () => {
  it("have a limit for each namespace, and objects beyond it say so until there is room", () => {
    const kept = new KeptFields(new KeptTotals(MOST));
    const first = kept.keep("team/first", object("1", 6_000), undefined);
    assert.deepEqual(first.fields, object("1", 6_000).fields);
    const second = kept.keep("team/second", object("2", 6_000), undefined);
    assert.deepEqual([second.fields, second.isTooLarge], [{}, true]);
    assert.equal(kept.keep("other/first", object("3", 6_000), undefined).isTooLarge, undefined);
    const smaller = kept.keep("team/first", object("1", 2_000), first);
    assert.equal(kept.keep("team/second", object("2", 6_000), second).isTooLarge, undefined);
    assert.equal(kept.keep("team/third", object("4", 6_000), undefined).isTooLarge, true);
    kept.gone("team/first", smaller);
    assert.equal(kept.keep("team/third", object("4", 2_000), undefined).isTooLarge, undefined);
  });

  it("count values as well as text", () => {
    const fields = { spec: { list: Array.from({ length: MOST / 10 }, () => 1) } };
    assert.equal(
      new KeptFields(new KeptTotals(MOST)).keep("team/a", { ...object("1", 0), fields }, undefined).isTooLarge,
      true,
    );
  });

  it("count what SecretProviderClasses bring likewise", () => {
    const of = (count: number): CachedObject => {
      const synced = Array.from({ length: count }, (_, n) => ({ secret: `secret-${n}`, keys: undefined }));
      return { uid: "1", resourceVersion: "1", generation: 1, synced };
    };
    const kept = new KeptFields(new KeptTotals(MOST));
    const first = kept.keep("team/first", of(50), undefined);
    assert.equal(first.synced?.length, 50);
    const second = kept.keep("team/second", of(50), undefined);
    assert.deepEqual([second.synced, second.isTooLarge], [[], true]);
    kept.recount(["team/first"], () => first);
    kept.gone("team/first", first);
    assert.equal(kept.keep("team/second", of(50), second).synced?.length, 50);
  });

  it("do not count for objects of a list that failed", () => {
    const kept = new KeptFields(new KeptTotals(MOST));
    const first = kept.keep("team/first", object("1", 6_000), undefined);
    for (let attempt = 0; attempt < 3; attempt++) kept.keep("team/first", object("1", 3_000), first);
    kept.recount(["team/first"], () => first);
    assert.equal(kept.keep("team/second", object("2", 5_000), undefined).isTooLarge, true);
    kept.gone("team/first", first);
    assert.equal(kept.keep("team/second", object("2", 5_000), undefined).isTooLarge, undefined);
  });

  it("count in all streams of a tenant together, until a stream is closed", () => {
    const totals = new KeptTotals(MOST);
    const [first, second, others] = ["team", "team", "other"].map((tenant) => new KeptFields(totals, tenant));
    const kept = first?.keep("team/a", object("1", 6_000), undefined);
    assert.equal(second?.keep("team/a", object("1", 6_000), undefined).isTooLarge, true);
    assert.equal(others?.keep("team/a", object("1", 6_000), undefined).isTooLarge, undefined);
    first?.recount(["team/a"], () => kept);
    assert.equal(second?.keep("team/a", object("1", 6_000), undefined).isTooLarge, true);
    first?.end();
    first?.keep("team/b", object("2", 6_000), undefined);
    assert.equal(second?.keep("team/a", object("1", 6_000), undefined).isTooLarge, undefined);
  });
});
