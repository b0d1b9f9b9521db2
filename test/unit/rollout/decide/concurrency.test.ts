/** How many workloads roll out at once in the installation, and which one is next. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { ConcurrencyLimiter, type Limits } from "../../../../src/rollout/decide/concurrency.ts";
import { fakeClock } from "../../clock.ts";

/** A little longer than a slot is kept. */
const LONG_MS = 10_001;

/** The slots, and which bindings were woken since the last call. */
function slotsOf(limits: () => Limits) {
  let woken: string[] = [];
  const slots = new ConcurrencyLimiter(limits, (bindingKey) => woken.push(bindingKey));
  const held = new Map<string, { id: string; namespace: string }[]>();
  const take = (bindingKey: string, id: string, namespace = "team") => {
    const isTaken = slots.take(bindingKey, id, namespace);
    if (isTaken) held.set(bindingKey, [...(held.get(bindingKey) ?? []), { id, namespace }]);
    return isTaken;
  };
  /** The workload has rolled out. */
  const free = (bindingKey: string, id: string) => {
    const others = (held.get(bindingKey) ?? []).filter((each) => each.id !== id);
    held.set(bindingKey, others);
    slots.update(bindingKey, others);
  };
  const wokenSince = () => {
    const before = woken;
    woken = [];
    return before;
  };
  return { slots, take, free, wokenSince };
}

describe("the concurrency slots of rollouts", () => {
  const clock = fakeClock();

  it("are unlimited if there is no limit", () => {
    const { take } = slotsOf(() => ({}));
    for (let n = 0; n < 1_000; n++) assert.ok(take("a", `${n}`));
  });

  it("are limited for the installation and for each namespace", () => {
    const { take } = slotsOf(() => ({ maxConcurrent: 3, maxConcurrentPerNamespace: 2 }));
    assert.deepEqual(
      [take("a", "1", "x"), take("a", "2", "x"), take("a", "3", "x"), take("a", "4", "y"), take("a", "5", "z")],
      [true, true, false, true, false],
    );
  });

  it("go to waiting workloads in the order of their requests, and to no later one", () => {
    const { take, free, wokenSince } = slotsOf(() => ({ maxConcurrent: 1 }));
    assert.ok(take("first", "1"));
    for (const binding of ["b", "c", "d"]) assert.equal(take(binding, binding), false);
    free("first", "1");
    assert.deepEqual(wokenSince(), ["b"]);
    assert.equal(take("late", "9"), false);
    assert.equal(take("c", "c"), false);
    assert.ok(take("b", "b"));
    free("b", "b");
    assert.deepEqual(wokenSince(), ["c"]);
  });

  it("keep no workload waiting for the limit of another namespace", () => {
    const { take, free, wokenSince } = slotsOf(() => ({ maxConcurrent: 2, maxConcurrentPerNamespace: 1 }));
    assert.ok(take("a", "1", "x") && take("a", "2", "y"));
    assert.equal(take("b", "3", "x"), false);
    assert.equal(take("c", "4", "z"), false);
    free("a", "2");
    assert.deepEqual(wokenSince(), ["c"]);
    free("a", "1");
    assert.deepEqual(wokenSince(), ["b"]);
  });

  it("count a workload of two bindings once, until both have released it", () => {
    const { take, free, wokenSince } = slotsOf(() => ({ maxConcurrent: 1 }));
    assert.ok(take("a", "1") && take("b", "1") && take("a", "1"));
    assert.equal(take("c", "2"), false);
    free("a", "1");
    assert.deepEqual(wokenSince(), []);
    free("b", "1");
    assert.deepEqual(wokenSince(), ["c"]);
  });

  it("wake a binding that waits for a workload when another binding rolls that workload out", () => {
    const { take, free, wokenSince } = slotsOf(() => ({ maxConcurrent: 1 }));
    assert.ok(take("a", "1"));
    assert.deepEqual([take("b", "2"), take("c", "2")], [false, false]);
    free("a", "1");
    assert.deepEqual(wokenSince(), ["b", "c"]);
    assert.deepEqual([take("c", "2"), take("b", "2")], [true, true]);
  });

  it("include restored ones, even beyond the limits, until they are released", () => {
    const { slots, take, wokenSince } = slotsOf(() => ({ maxConcurrent: 1 }));
    slots.restore(
      "a",
      [1, 2].map((n) => ({ id: `${n}`, namespace: "team" })),
    );
    assert.equal(take("b", "3"), false);
    slots.update("a", [{ id: "2", namespace: "team" }]);
    assert.deepEqual(wokenSince(), []);
    slots.forget("a");
    assert.deepEqual(wokenSince(), ["b"]);
  });

  it("wake no binding that was forgotten, whatever it requested", () => {
    const { slots, take, free, wokenSince } = slotsOf(() => ({ maxConcurrent: 1 }));
    assert.ok(take("a", "1"));
    for (const binding of ["b", "c", "d"]) take(binding, binding);
    slots.forget("b");
    slots.forget("c");
    free("a", "1");
    assert.deepEqual(wokenSince(), ["d"]);
  });

  it("are kept for a woken binding for a while, and then go to the next one", async () => {
    const { take, free, wokenSince } = slotsOf(() => ({ maxConcurrent: 1 }));
    assert.ok(take("a", "1"));
    for (const binding of ["b", "c"]) take(binding, binding);
    free("a", "1");
    await clock.pass(LONG_MS - 2);
    assert.deepEqual(wokenSince(), ["b"]);
    await clock.pass(2);
    assert.deepEqual(wokenSince(), ["c"]);
    assert.equal(take("b", "b"), false, "it was late, and requests a slot again");
    assert.ok(take("c", "c"));
    free("c", "c");
    assert.deepEqual(wokenSince(), ["b"]);
  });

  it("that are kept for a binding may be used for another of its workloads", () => {
    const { take, free, wokenSince } = slotsOf(() => ({ maxConcurrent: 1 }));
    assert.ok(take("a", "1"));
    for (const id of ["2", "3"]) take("b", id);
    take("c", "4");
    free("a", "1");
    assert.ok(take("b", "3"));
    free("b", "3");
    assert.deepEqual(wokenSince(), ["b", "c"]);
    assert.ok(take("c", "4"));
    free("c", "4");
    assert.deepEqual(wokenSince(), ["b"]);
  });

  it("stay with rolling workloads when limits are lowered, but no more begin; higher limits wake more at once", () => {
    let maxConcurrent = 2;
    const { slots, take, free, wokenSince } = slotsOf(() => ({ maxConcurrent, maxConcurrentPerNamespace: 3 }));
    assert.ok(take("a", "1") && take("a", "2"));
    for (const binding of ["b", "c", "d"]) take(binding, binding);
    maxConcurrent = 1;
    slots.limitsChanged();
    free("a", "1");
    assert.deepEqual([wokenSince(), take("b", "b"), take("a", "2")], [[], false, true]);
    maxConcurrent = 3;
    slots.limitsChanged();
    assert.deepEqual(wokenSince(), ["b", "c"]);
  });

  it("are refused to a binding that was woken before limits were lowered, which keeps its position", () => {
    let maxConcurrent = 2;
    const { slots, take, free, wokenSince } = slotsOf(() => ({ maxConcurrent, maxConcurrentPerNamespace: 3 }));
    assert.ok(take("a", "1") && take("a", "2"));
    for (const binding of ["b", "c"]) take(binding, binding);
    free("a", "1");
    assert.deepEqual(wokenSince(), ["b"]);
    maxConcurrent = 1;
    slots.limitsChanged();
    assert.equal(take("b", "b"), false);
    free("a", "2");
    assert.deepEqual(wokenSince(), ["b"]);
  });

  it("that lowered limits took from a woken binding go to those for which they suffice", () => {
    let limits: Limits = { maxConcurrent: 2, maxConcurrentPerNamespace: 2 };
    const { slots, take, free, wokenSince } = slotsOf(() => limits);
    assert.ok(take("a", "1", "x") && take("a", "2", "y"));
    take("b", "b", "x");
    free("a", "2");
    take("c", "c", "y");
    limits = { maxConcurrent: 2, maxConcurrentPerNamespace: 1 };
    slots.limitsChanged();
    assert.equal(take("b", "b", "x"), false);
    assert.deepEqual(wokenSince(), ["b", "c"]);
  });

  it("are not all for one namespace, unless there is only one or the limits say so", () => {
    let limits: Limits = { maxConcurrent: 3 };
    const { slots, take, wokenSince } = slotsOf(() => limits);
    assert.deepEqual([take("a", "1"), take("a", "2"), take("a", "3"), take("b", "4", "x")], [true, true, false, true]);
    limits = { maxConcurrent: 4, maxConcurrentPerNamespace: 4 };
    slots.limitsChanged();
    assert.deepEqual(wokenSince(), ["a"]);
    assert.ok(slotsOf(() => ({ maxConcurrent: 1 })).take("a", "1"));
  });

  it("go to the namespace that has the fewest, whatever the order of requests", () => {
    const { take, free, wokenSince } = slotsOf(() => ({ maxConcurrent: 4 }));
    for (const id of ["1", "2", "3"]) assert.ok(take("a", id, "x"));
    for (const binding of ["b", "c"]) assert.equal(take(binding, binding, "x"), false);
    assert.ok(take("d", "4", "y"));
    for (const binding of ["e", "f"]) assert.equal(take(binding, binding, "y"), false);
    free("a", "1");
    assert.deepEqual(wokenSince(), ["e"]);
    assert.ok(take("e", "e", "y"));
    free("a", "2");
    assert.deepEqual(wokenSince(), ["b"]);
  });

  it("do not return to their last owner while others wait, first of other namespaces and then of the same one", () => {
    const { take, free, wokenSince } = slotsOf(() => ({ maxConcurrent: 1 }));
    assert.ok(take("a", "1", "x"));
    for (const binding of ["a", "b"]) assert.equal(take(binding, `${binding}2`, "x"), false);
    assert.equal(take("c", "3", "y"), false);
    // This includes a slot that was released after an hour while the workload still rolls out.
    free("a", "1");
    assert.deepEqual(wokenSince(), ["c"]);
    assert.ok(take("c", "3", "y"));
    free("c", "3");
    assert.deepEqual(wokenSince(), ["b"]);
  });

  it("are released after an hour, also if the workload restarts again and again", async () => {
    const { take, wokenSince } = slotsOf(() => ({ maxConcurrent: 1 }));
    assert.ok(take("a", "1", "x") && take("b", "1", "x"));
    assert.equal(take("c", "2", "y"), false);
    await clock.pass(3_599_000);
    assert.ok(take("a", "1", "x"));
    assert.deepEqual(wokenSince(), []);
    await clock.pass(1_001);
    assert.deepEqual([take("a", "1", "x"), wokenSince()], [false, ["c"]]);
  });

  it("are not given to workloads that roll out without a request while others wait", () => {
    const { slots, take, free, wokenSince } = slotsOf(() => ({ maxConcurrent: 1 }));
    assert.ok(take("a", "1", "x"));
    assert.equal(take("b", "2", "y"), false);
    slots.update("c", [{ id: "3", namespace: "z" }]);
    free("a", "1");
    slots.update("c", [{ id: "3", namespace: "z" }]);
    assert.deepEqual([wokenSince(), take("b", "2", "y")], [["b"], true]);
    free("b", "2");
    slots.update("c", [{ id: "3", namespace: "z" }]);
    assert.equal(take("b", "4", "y"), false, "now it has one");
  });

  it("come to a namespace without one after every other namespace has had at most one", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(move, { minLength: 30, maxLength: 60 }),
        async (most, moves) => {
          const { slots, take, free, wokenSince } = slotsOf(() => ({ maxConcurrent: most }));
          /** By the id of the workload, the binding that rolls it out. */
          const rolls = new Map<string, string>();
          /** Of each namespace, how many had a slot or had one kept since the victim's request. */
          const before = new Map<string, number>();
          let isWaiting = false;
          for (const { what, namespace, n } of moves) {
            const [bindingKey, id] = [`${namespace}/${n % 3}`, `${namespace}/${n}`];
            const [ending, by = ""] = [...rolls][n % rolls.size] ?? [];
            if (what === "ask" && !rolls.has(id) && take(bindingKey, id, namespace)) rolls.set(id, bindingKey);
            if (what === "end" && ending !== undefined) {
              rolls.delete(ending);
              free(by, ending);
            }
            if (what === "forget") {
              for (const [each, holder] of rolls) if (holder === bindingKey) rolls.delete(each);
              slots.forget(bindingKey);
            }
            if (what === "pass") await clock.pass(LONG_MS);
            const woken = wokenSince().map((key) => key.slice(0, 1));
            const isNext = woken.includes("v");
            const first = woken.slice(0, isNext ? woken.indexOf("v") : woken.length);
            if (isWaiting) for (const each of first) before.set(each, (before.get(each) ?? 0) + 1);
            if (isNext) break;
            if (what === "victim") isWaiting ||= !take("v/1", "v/1", "v");
          }
          assert.ok(Math.max(0, ...before.values()) <= 1, JSON.stringify([...before]));
        },
      ),
      { numRuns: 300 },
    );
  });

  it("never exceed the limits, are never free while a binding waits, and come to every waiting binding, whatever happens", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 60 }), async (events) => {
        const world = new World();
        for (const each of events) world.happen(each);
        await world.settle(clock);
        world.assertFull();
        await world.rollAll(clock);
      }),
      { numRuns: 300 },
    );
  });
});

const move = fc.record({
  what: fc.constantFrom("ask", "ask", "ask", "ask", "end", "end", "forget", "pass", "victim"),
  namespace: fc.constantFrom("x", "y", "z"),
  n: fc.nat(8),
});

const BINDINGS = ["a", "b", "c", "d"];
const WORKLOADS = ["1", "2", "3", "4", "5", "6", "7"];
const namespaceOf = (id: string) => (Number(id) % 3 === 0 ? "x" : "y");

const binding = fc.constantFrom(...BINDINGS);
const workload = fc.constantFrom(...WORKLOADS);
const limit = fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined });
type Event =
  | { what: "want" | "mindless"; binding: string; workload: string }
  | { what: "done"; workload: string }
  | { what: "restore"; binding: string; workloads: string[] }
  | { what: "forget"; binding: string }
  | { what: "limits"; most: number | undefined; mostThere: number | undefined }
  | { what: "work" };
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ what: fc.constant("want" as const), binding, workload }) },
  { weight: 4, arbitrary: fc.record({ what: fc.constant("done" as const), workload }) },
  { weight: 3, arbitrary: fc.record({ what: fc.constant("work" as const) }) },
  fc.record({ what: fc.constant("mindless" as const), binding, workload }),
  fc.record({ what: fc.constant("restore" as const), binding, workloads: fc.uniqueArray(workload, { maxLength: 3 }) }),
  fc.record({ what: fc.constant("forget" as const), binding }),
  fc.record({ what: fc.constant("limits" as const), most: limit, mostThere: limit }),
);

/** Bindings that request what they want when something happens to them, and when they are woken. */
class World {
  #limits: Limits = { maxConcurrent: 2 };
  readonly #slots = new ConcurrencyLimiter(
    () => this.#limits,
    (bindingKey) => this.#woken.add(bindingKey),
  );
  readonly #woken = new Set<string>();
  readonly #wants = new Map(BINDINGS.map((each) => [each, new Set<string>()]));
  readonly #holds = new Map(BINDINGS.map((each) => [each, new Set<string>()]));

  happen(event: Event): void {
    if (event.what === "want") {
      this.#of(this.#wants, event.binding).add(event.workload);
      this.#reconcile(event.binding);
    }
    // The limiter does not learn that the slot is not wanted any more.
    if (event.what === "mindless") this.#of(this.#wants, event.binding).delete(event.workload);
    if (event.what === "done") this.#done(event.workload);
    if (event.what === "restore") {
      for (const id of event.workloads) this.#of(this.#holds, event.binding).add(id);
      this.#slots.restore(
        event.binding,
        event.workloads.map((id) => ({ id, namespace: namespaceOf(id) })),
      );
      this.#reconcile(event.binding);
    }
    if (event.what === "forget") {
      for (const each of [this.#wants, this.#holds]) this.#of(each, event.binding).clear();
      this.#slots.forget(event.binding);
    }
    if (event.what === "limits") {
      this.#limits = {
        ...(event.most !== undefined && { maxConcurrent: event.most }),
        ...(event.mostThere !== undefined && { maxConcurrentPerNamespace: event.mostThere }),
      };
      this.#slots.limitsChanged();
    }
    if (event.what === "work") this.#work();
  }

  /** Until no binding is woken any more. */
  async settle(clock: { pass(ms: number): Promise<void> }): Promise<void> {
    for (let round = 0; round < 50; round++) {
      this.#work();
      await clock.pass(LONG_MS);
      if (this.#woken.size === 0) return;
    }
    assert.fail("there is no end to the waking");
  }

  /** Asserts that no binding waits for a free slot. */
  assertFull(): void {
    const rolling = this.#rolling();
    for (const [each, wants] of this.#wants) {
      for (const id of wants) {
        if (this.#of(this.#holds, each).has(id)) continue;
        assert.ok(!rolling.has(id), `${each} waits for ${id}, which rolls`);
        assert.ok(!this.#fits(id, rolling), `${each} waits for ${id}, and there is a place`);
      }
    }
  }

  /** Asserts that every wanted workload rolls out in the end, if every rollout ends at some time. */
  async rollAll(clock: { pass(ms: number): Promise<void> }): Promise<void> {
    for (let round = 0; this.#rolling().size > 0; round++) {
      assert.ok(round < 50, "there is no end to the rolling");
      for (const id of this.#rolling()) this.#done(id);
      await this.settle(clock);
    }
    for (const [each, wants] of this.#wants) assert.deepEqual([...wants], [], `${each} still waits`);
  }

  #reconcile(bindingKey: string): void {
    const holds = this.#of(this.#holds, bindingKey);
    for (const id of this.#of(this.#wants, bindingKey)) {
      if (holds.has(id)) continue;
      const before = this.#rolling();
      const may = this.#slots.take(bindingKey, id, namespaceOf(id));
      if (before.has(id)) assert.ok(may, "it rolls anyway");
      else if (may) assert.ok(this.#fits(id, before), `${id} beside ${[...before]}`);
      if (may) holds.add(id);
    }
  }

  #work(): void {
    const woken = [...this.#woken];
    this.#woken.clear();
    for (const each of woken) this.#reconcile(each);
  }

  #done(id: string): void {
    for (const each of BINDINGS) {
      const holds = this.#of(this.#holds, each);
      if (!holds.delete(id)) continue;
      this.#of(this.#wants, each).delete(id);
      this.#slots.update(
        each,
        [...holds].map((other) => ({ id: other, namespace: namespaceOf(other) })),
      );
    }
  }

  #rolling(): Set<string> {
    return new Set([...this.#holds.values()].flatMap((ids) => [...ids]));
  }

  #fits(id: string, rolling: ReadonlySet<string>): boolean {
    const there = [...rolling].filter((each) => namespaceOf(each) === namespaceOf(id)).length;
    const { maxConcurrent = Infinity, ...limits } = this.#limits;
    const { maxConcurrentPerNamespace = Math.max(1, maxConcurrent - 1) } = limits;
    return rolling.size < maxConcurrent && there < maxConcurrentPerNamespace;
  }

  #of(map: ReadonlyMap<string, Set<string>>, bindingKey: string): Set<string> {
    return map.get(bindingKey) ?? assert.fail();
  }
}
