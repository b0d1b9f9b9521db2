/** Each record of a deleted binding is released exactly once. */
import assert from "node:assert/strict";
import type { SecretBinding, StoredBinding } from "../../../../src/api/binding.ts";
import { stubOf } from "../../../../src/api/stub.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { Deletions } from "../../../../src/controllers/binding/deletions.ts";
import { bindingOf, recordOf } from "../../objects.ts";

const KEY = "team/b";

const bindingWith = (uid: string, ...targets: string[]): SecretBinding =>
  bindingOf({
    metadata: { namespace: "team", name: "b", uid },
    status: { targets: targets.map((name) => recordOf({ name })) },
  });

describe("deleted bindings", () => {
  let asked: string[];
  let refused: Set<string>;
  let deletions: Deletions;
  beforeEach(() => {
    asked = [];
    refused = new Set();
    deletions = new Deletions(async ({ metadata }, left) => {
      for (const { name } of left) asked.push(`${metadata.uid} ${name}`);
      const records = left.filter(({ name }) => refused.has(name));
      return records.length === 0 ? { records } : { records, problem: new Problem("Forbidden", "no permission") };
    });
  });

  /** The names of the released objects. */
  async function released(work: () => Promise<boolean>): Promise<[boolean, ...string[]]> {
    asked = [];
    return [await work(), ...asked];
  }

  const isReleased = async (binding: SecretBinding) => (await deletions.releaseHeld(binding)).records.length === 0;

  it("that no longer exist are released once, and only failed releases are retried", async () => {
    refused.add("two");
    deletions.gone(bindingWith("A", "one", "two"));
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [false, "A one", "A two"]);
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [false, "A two"]);
    refused.clear();
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [true, "A two"]);
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [true]);
  });

  it("of which only a stub is kept are released by their whole bindings, and remembered without their records", async () => {
    refused.add("two");
    const whole = bindingWith("A", "one", "two");
    const stub = stubOf(whole as StoredBinding) as SecretBinding;
    const isDone = async () => (await deletions.releaseHeld(stub, whole)).records.length === 0;
    for (let n = 0; n < 2; n++) assert.deepEqual(await released(isDone), [false, "A one", "A two"]);
    refused.clear();
    assert.deepEqual(await released(isDone), [true, "A one", "A two"]);
    assert.deepEqual(await released(isDone), [true]);
    deletions.gone(stub);
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [true]);
    // Without a finalizer, the records are gone with the binding.
    deletions.gone(stub);
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [true]);
  });

  it("that a finalizer keeps are released once, and not again when they are gone", async () => {
    refused.add("two");
    const binding = bindingWith("A", "one", "two");
    assert.deepEqual(await released(() => isReleased(binding)), [false, "A one", "A two"]);
    assert.deepEqual(await released(() => isReleased(binding)), [false, "A two"]);
    refused.clear();
    assert.deepEqual(await released(() => isReleased(binding)), [true, "A two"]);
    // The write that removes the finalizer may have to be retried.
    assert.deepEqual(await released(() => isReleased(binding)), [true]);
    deletions.gone(binding);
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [true]);
  });

  it("that a finalizer keeps report why they are not released", async () => {
    refused.add("two");
    const { records, problem } = await deletions.releaseHeld(bindingWith("A", "one", "two"));
    assert.deepEqual([records.map(({ name }) => name), problem?.reason], [["two"], "Forbidden"]);
  });

  it("whose finalizer another client removed are released completely", async () => {
    refused.add("two");
    const binding = bindingWith("A", "one", "two");
    await deletions.releaseHeld(binding);
    deletions.gone(binding);
    refused.clear();
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [true, "A two"]);
  });

  it("of the same name are all released, including the first", async () => {
    refused.add("one");
    deletions.gone(bindingWith("A", "one"));
    await deletions.releaseGone(KEY);
    deletions.gone(bindingWith("B", "two"));
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [false, "A one", "B two"]);
    assert.deepEqual(await released(() => deletions.releaseGone("team/other")), [true]);
    refused.clear();
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [true, "A one"]);
  });

  it("that are deleted during another release are released afterwards", async () => {
    const other = bindingWith("B", "two");
    const slow = new Deletions(async ({ metadata }) => {
      if (metadata.uid === "A") slow.gone(other);
      else asked.push("B");
      return { records: [] };
    });
    slow.gone(bindingWith("A", "one"));
    assert.deepEqual(await released(() => slow.releaseGone(KEY)), [false]);
    assert.deepEqual(await released(() => slow.releaseGone(KEY)), [true, "B"]);
  });
});
