/** How often a field that others keep changing is corrected, and when that counts as contention. */
import assert from "node:assert/strict";
import { ContentionBudget } from "../../../src/targets/contention-budget.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** A target that was written once from inputs `v1`. `now` is the test's own time. */
function written() {
  const time = { now: 1_000_000 };
  const contention = new ContentionBudget(() => time.now);
  assert.equal(contention.mayWrite("k", "v1", []), 0);
  contention.wrote("k", "v1");
  return {
    time,
    contention,
    /** Changes the field: corrects it if that is allowed now, else returns how long it is not. */
    change(inputs = "v1", by: string[] = ["kubectl"]): number {
      const wait = contention.mayWrite("k", inputs, by);
      if (wait === 0) contention.wrote("k", inputs);
      return wait;
    },
  };
}

describe("a field that another client changes", () => {
  it("is corrected at once three times in a minute, and the fourth time after a second", () => {
    const { time, contention, change } = written();
    for (let correction = 0; correction < 3; correction++) {
      assert.equal(change(), 0);
      assert.equal(contention.stateOf("k"), undefined);
      time.now += SECOND;
    }
    assert.equal(change(), SECOND);
    time.now += 400;
    assert.equal(change(), 600);
  });

  it("is corrected with pauses that double from a second to five minutes", () => {
    const { time, change } = written();
    for (let correction = 0; correction < 3; correction++) change();
    const pauses: number[] = [];
    for (let correction = 0; correction < 12; correction++) {
      const wait = change();
      pauses.push(wait / SECOND);
      time.now += wait;
      assert.equal(change(), 0);
    }
    assert.deepEqual(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
  });

  it("is corrected at once if that happens up to three times in any minute", () => {
    const { time, contention, change } = written();
    for (let correction = 0; correction < 30; correction++) {
      time.now += MINUTE / 3 + 1;
      assert.equal(change(), 0);
    }
    assert.equal(contention.stateOf("k"), undefined);
  });

  it("is written at once when its sources changed, even during contention", () => {
    const { contention, change } = written();
    for (let correction = 0; correction < 3; correction++) change();
    assert.equal(change(), SECOND);
    assert.equal(change("v2"), 0);
    assert.ok(contention.stateOf("k"));
    assert.ok(change("v2") > 0);
  });

  it("counts only against its own key", () => {
    const { contention, change } = written();
    for (let correction = 0; correction < 4; correction++) change();
    contention.wrote("other", "v1");
    assert.equal(contention.mayWrite("other", "v1", ["kubectl"]), 0);
    assert.equal(contention.stateOf("other"), undefined);
    assert.equal(contention.stateOf("never seen"), undefined);
  });
});

describe("contention", () => {
  it("names the manager that last changed the field", () => {
    const { contention, change } = written();
    for (let correction = 0; correction < 3; correction++) change();
    change("v1", ["argocd", "kubectl"]);
    assert.equal(contention.stateOf("k")?.by, "argocd, kubectl");
    change("v1", []);
    assert.equal(contention.stateOf("k")?.by, "another client");
  });

  it("ends after a third of a minute without changes, and three corrections are free again after a minute", () => {
    const { time, contention, change } = written();
    for (let correction = 0; correction < 3; correction++) change();
    time.now += change();
    assert.equal(change(), 0);
    time.now += MINUTE / 3 - 1;
    assert.deepEqual(contention.stateOf("k"), { of: "corrections", by: "kubectl", remainingMs: 1 });
    time.now += 1;
    assert.equal(contention.stateOf("k"), undefined);
    // Of the last minute, four writes count.
    assert.equal(change(), SECOND);
    time.now += MINUTE;
    assert.equal(contention.stateOf("k"), undefined);
    for (let correction = 0; correction < 3; correction++) assert.equal(change(), 0);
    assert.equal(change(), SECOND);
  });

  it("is forgotten for the targets of one binding if a user requests that", () => {
    const { contention } = written();
    for (const key of ["one/a", "one/b", "two/a"])
      for (let write = 0; write < 5; write++) {
        contention.mayWrite(key, "v1", ["kubectl"]);
        contention.wrote(key, "v1");
      }
    assert.ok(contention.mayWrite("one/a", "v1", []) > 0);
    contention.forget("one/");
    assert.deepEqual(
      ["one/a", "one/b", "two/a"].map((key) => [contention.mayWrite(key, "v1", []), contention.stateOf(key)?.of]),
      [
        [0, undefined],
        [0, undefined],
        [2_000, "corrections"],
      ],
    );
  });

  it("ends no sooner than its last pause", () => {
    const { time, contention, change } = written();
    for (let correction = 0; correction < 3; correction++) change();
    for (let correction = 0; correction < 9; correction++) {
      time.now += change();
      assert.equal(change(), 0);
    }
    time.now += 5 * MINUTE - 1;
    assert.equal(contention.stateOf("k")?.remainingMs, 1);
    time.now += 1;
    assert.equal(contention.stateOf("k"), undefined);
  });
});

describe("a value that comes from an object which a binding wrote", () => {
  /**
   * The target `there` was written, and is the source of `k`: writes k from a new version of it if that is allowed now.
   */
  function fed() {
    const { time, contention } = written();
    let version = 1;
    contention.wrote("other", "w1", "there");
    const echo = (): number => {
      const inputs = `v${++version}`;
      const wait = contention.mayWrite("k", inputs, [], ["there"]);
      if (wait === 0) contention.wrote("k", inputs, "here", ["there"]);
      return wait;
    };
    return { time, contention, echo };
  }

  it("is written at once five times in a minute, then with pauses that double, and names no manager", () => {
    const { time, contention, echo } = fed();
    for (let round = 0; round < 5; round++) assert.equal(echo(), 0);
    assert.equal(contention.stateOf("k"), undefined);
    const pauses: number[] = [];
    for (let round = 0; round < 10; round++) {
      const wait = echo();
      pauses.push(wait / SECOND);
      assert.equal(contention.stateOf("k")?.of, "echoes");
      assert.ok(contention.stateOf("k"));
      time.now += wait;
      contention.wrote("other", `w${round}`, "there");
      assert.equal(echo(), 0);
    }
    assert.deepEqual(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
  });

  it("is written at once if it changes less than five times in any minute", () => {
    const { time, contention, echo } = fed();
    for (let round = 0; round < 30; round++) {
      time.now += MINUTE / 5 + 1;
      contention.wrote("other", "w", "there");
      assert.equal(echo(), 0);
    }
    assert.equal(contention.stateOf("k"), undefined);
  });
});

describe("a value that comes from anywhere else", () => {
  it("is written at once sixty times in a minute, then with pauses that double up to a minute: a client may copy it back", () => {
    const { time, contention } = written();
    let version = 1;
    const change = (): number => {
      const inputs = `v${++version}`;
      const wait = contention.mayWrite("k", inputs, [], ["elsewhere"]);
      if (wait === 0) contention.wrote("k", inputs, "here", ["elsewhere"]);
      return wait;
    };
    for (let round = 0; round < 60; round++) assert.equal(change(), 0);
    assert.equal(contention.stateOf("k"), undefined);
    const pauses: number[] = [];
    for (let round = 0; round < 8; round++) {
      const wait = change();
      pauses.push(wait / SECOND);
      assert.equal(contention.stateOf("k")?.of, "changes");
      time.now += wait;
      assert.equal(change(), 0);
    }
    assert.deepEqual(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    time.now += MINUTE;
    assert.equal(contention.stateOf("k"), undefined);
    assert.equal(change(), 0);
  });
});
