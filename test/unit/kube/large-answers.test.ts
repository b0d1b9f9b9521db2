/** Large answers wait for a permit, by namespace in turns, while small ones and answers of other namespaces arrive. */
import assert from "node:assert/strict";
import { ALL_NAMESPACES, LargeAnswers, type Permit } from "../../../src/kube/large-answers.ts";

const settled = () => new Promise((resolve) => setImmediate(resolve));
const never = new AbortController().signal;

/** Takes permits, and records the order in which they are granted. */
class Answers {
  readonly granted: string[] = [];
  readonly #large = new LargeAnswers();

  take(group: string, name = group, signal = never): Permit {
    const permit = this.#large.permit(group);
    permit.take(signal).then(
      () => this.granted.push(name),
      () => this.granted.push(`not ${name}`),
    );
    return permit;
  }
}

describe("permits for large answers", () => {
  it("are two for a namespace, four for all, and two more for what concerns all", async () => {
    const answers = new Answers();
    const permits = ["a", "a", "a", "b", "b", "b", "c", ALL_NAMESPACES, ALL_NAMESPACES, ALL_NAMESPACES].map((group) =>
      answers.take(group),
    );
    await settled();
    assert.deepEqual(answers.granted.toSorted(), ["", "", "a", "a", "b", "b"]);
    assert.deepEqual(permits.filter(({ isWaiting }) => isWaiting).length, 4);
  });

  it("go to namespaces in turns", async () => {
    const answers = new Answers();
    const held = ["x", "x", "y", "y"].map((group) => answers.take(group));
    for (const name of ["a1", "a2", "a3", "b1", "c1"]) answers.take(name.slice(0, 1), name);
    await settled();
    for (const permit of held) permit.release();
    await settled();
    assert.deepEqual(answers.granted.slice(4), ["a1", "b1", "c1", "a2"]);
  });

  it("are released once, and not taken by an answer that was aborted meanwhile", async () => {
    const answers = new Answers();
    const [first, second] = [answers.take("a"), answers.take("a")];
    const abort = new AbortController();
    const aborted = answers.take("a", "late", abort.signal);
    answers.take("a", "next");
    answers.take("a", "last");
    await settled();
    abort.abort();
    await settled();
    aborted.release();
    assert.deepEqual(answers.granted, ["a", "a", "not late"]);
    first.release();
    first.release();
    await settled();
    assert.deepEqual(answers.granted.slice(3), ["next"]);
    second.release();
    await settled();
    assert.deepEqual(answers.granted.slice(4), ["last"]);
  });
});
