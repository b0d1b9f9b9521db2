/** What is left to release of deleted bindings: each record until it is released, and never after. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../../src/api/binding.ts";
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
      return left.filter(({ name }) => refused.has(name));
    });
  });

  /** What is released by then. */
  async function released(work: () => Promise<boolean>): Promise<[boolean, ...string[]]> {
    asked = [];
    return [await work(), ...asked];
  }

  it("that are gone are released once, and only what could not be is tried again", async () => {
    refused.add("two");
    deletions.gone(bindingWith("A", "one", "two"));
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [false, "A one", "A two"]);
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [false, "A two"]);
    refused.clear();
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [true, "A two"]);
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [true]);
  });

  it("that hold themselves are released likewise, and not again when they are gone", async () => {
    refused.add("two");
    const binding = bindingWith("A", "one", "two");
    assert.deepEqual(await released(() => deletions.releaseHeld(binding)), [false, "A one", "A two"]);
    assert.deepEqual(await released(() => deletions.releaseHeld(binding)), [false, "A two"]);
    refused.clear();
    assert.deepEqual(await released(() => deletions.releaseHeld(binding)), [true, "A two"]);
    // The write that lets it go may have to be tried again.
    assert.deepEqual(await released(() => deletions.releaseHeld(binding)), [true]);
    deletions.gone(binding);
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [true]);
  });

  it("whose finalizer somebody took off are released of what was left", async () => {
    refused.add("two");
    const binding = bindingWith("A", "one", "two");
    await deletions.releaseHeld(binding);
    deletions.gone(binding);
    refused.clear();
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [true, "A two"]);
  });

  it("of one name are all released, the first too", async () => {
    refused.add("one");
    deletions.gone(bindingWith("A", "one"));
    await deletions.releaseGone(KEY);
    deletions.gone(bindingWith("B", "two"));
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [false, "A one", "B two"]);
    assert.deepEqual(await released(() => deletions.releaseGone("team/other")), [true]);
    refused.clear();
    assert.deepEqual(await released(() => deletions.releaseGone(KEY)), [true, "A one"]);
  });

  it("that go while another is released wait for their turn", async () => {
    const other = bindingWith("B", "two");
    const slow = new Deletions(async ({ metadata }) => {
      if (metadata.uid === "A") slow.gone(other);
      else asked.push("B");
      return [];
    });
    slow.gone(bindingWith("A", "one"));
    assert.deepEqual(await released(() => slow.releaseGone(KEY)), [false]);
    assert.deepEqual(await released(() => slow.releaseGone(KEY)), [true, "B"]);
  });
});
