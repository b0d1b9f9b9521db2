/** Which sources of a binding are read. */
import assert from "node:assert/strict";
import type { ObjectRef } from "../../../src/apimachinery/objects.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { readSources } from "../../../src/sources/registry.ts";
import type { LiveSource } from "../../../src/transform/live-source.ts";
import { CONFIGMAPS } from "../resources.ts";

const BUCKET: ObjectRef = { resource: CONFIGMAPS, namespace: "team", name: "bucket" };
const FORBIDDEN = new Problem("Forbidden", "the target may not be watched", "event");

/** The reasons why they are not, where the one target can't be written. */
async function notRead(isForRollout: boolean) {
  const view = {
    account: undefined,
    members: [{ target: {}, ref: FORBIDDEN, selected: false }] as never,
    problemOf: (ref: ObjectRef | Problem) => (ref instanceof Problem ? ref : undefined),
  };
  const read = async () => ({ kind: "absent" }) as LiveSource;
  const sources = await readSources({ sources: new Map([["bucket", BUCKET]]) }, view, isForRollout, read);
  return [...sources.values()].map((each) => (each instanceof Problem ? each.reason : undefined));
}

describe("the sources of a binding", () => {
  it("are not read where no target can be written, unless workloads have to be told from them", async () => {
    assert.deepEqual(await notRead(false), ["Unavailable"]);
    assert.deepEqual(await notRead(true), [undefined]);
  });
});
