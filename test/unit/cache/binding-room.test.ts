/** Which bindings are kept whole, whatever the order in which they arrive. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { bindingKey, type SecretBinding, type StoredBinding } from "../../../src/api/binding.ts";
import { bindingLength, isStub } from "../../../src/api/stub.ts";
import { BindingRoom } from "../../../src/cache/binding-room.ts";
import type { Entry } from "../../../src/cache/resource-store.ts";
import { finish } from "../../../src/workqueue/cpu-scheduler.ts";
import { bindingOf } from "../objects.ts";

const EMPTY = bindingLength(bindingOf({ metadata: { name: "a", namespace: "team" }, status: {} }) as StoredBinding);
const LIMITS = { bindingBytes: 2 * EMPTY, bindingBytesPerNamespace: 5 * EMPTY };

const finished = (_: string, work: Generator<void, void>) => finish(work);

describe("the room for bindings", () => {
  let room: BindingRoom;
  let moved: string[];
  const moving = [({ object }: Entry<StoredBinding>) => void moved.push(bindingKey(object)), finished] as const;
  beforeEach(() => {
    moved = [];
    room = new BindingRoom(LIMITS, ...moving);
  });

  /** A binding of the size of `units` empty ones, created in that second. */
  function put(name: string, second: number, units = 1, namespace = "team"): Entry<StoredBinding> {
    const creationTimestamp = `2026-01-01T00:00:${String(second).padStart(2, "0")}Z`;
    const binding = bindingOf({ metadata: { name, namespace, creationTimestamp }, status: {} }) as StoredBinding;
    const missing = Math.floor(units * EMPTY) - bindingLength(binding);
    const padding = "x".repeat(Math.max(0, missing - '"labels":{"x":""},'.length));
    const object = { ...binding, metadata: { ...binding.metadata, ...(padding !== "" && { labels: { x: padding } }) } };
    const entry = { resourceVersion: "1", object };
    room.put(entry);
    return entry;
  }
  const isWhole = ({ object }: Entry<StoredBinding>) => !isStub(object);

  it("keeps a stub of a binding that is too large by itself, which takes no room from others", () => {
    const [large, ...others] = [put("large", 1, 2.5), put("b", 2, 1.9), put("c", 3, 1.9)];
    assert.deepEqual([large, ...others].map(isWhole), [false, true, true]);
    assert.equal(room.excessOf(large)?.limit, "bindingBytes");
  });

  it("keeps the oldest bindings of each namespace up to its limit, and reports which ones lose and regain their room", () => {
    const young = put("young", 9, 1.8);
    const elsewhere = put("elsewhere", 10, 1.8, "other");
    const [old, older] = [put("old", 3, 1.8), put("older", 2, 1.8)];
    assert.deepEqual([young, old, older, elsewhere].map(isWhole), [false, true, true, true]);
    assert.deepEqual(moved.splice(0), ["team/young"]);
    assert.equal(room.excessOf(young)?.limit, "bindingBytesPerNamespace");
    room.removed(older);
    assert.deepEqual([moved.splice(0), room.excessOf(young)], [["team/young"], undefined]);
    // The stub stays until the whole binding is read.
    assert.equal(isWhole(young), false);
    put("old", 3, 1.9);
    put("oldest", 1, 1.9);
    assert.deepEqual(moved.splice(0), []);
    assert.equal(room.excessOf(young)?.limit, "bindingBytesPerNamespace");
  });

  it("keeps the oldest bindings up to a number of fields that they own, of all objects together", () => {
    room = new BindingRoom({ ...LIMITS, bindingBytes: 1e6, bindingBytesPerNamespace: 1e6, ownedFields: 10 }, ...moving);
    const owning = (name: string, second: number, objects: string[], paths: string[]) => {
      const creationTimestamp = `2026-01-01T00:00:0${second}Z`;
      const own = { apiVersion: "v1", kind: "ConfigMap", reason: "Synced", objects, paths };
      const status = { targets: [own] } as object as SecretBinding["status"];
      const object = bindingOf({ metadata: { name, namespace: "team", creationTimestamp }, status }) as StoredBinding;
      const entry = { resourceVersion: "1", object };
      room.put(entry);
      return entry;
    };
    const [young, old] = [owning("young", 3, ["a", "b", "c"], ["x"]), owning("old", 2, ["a", "b"], ["x", "y", "z"])];
    assert.deepEqual([young, old].map(isWhole), [true, true]);
    const oldest = owning("oldest", 1, ["a", "b"], []);
    assert.deepEqual([oldest, old, young].map(isWhole), [true, true, false]);
    const { limit, fields } = room.excessOf(young) ?? {};
    assert.deepEqual([limit, fields, moved], ["ownedFields", 3, ["team/young"]]);
  });

  it("moves bindings in steps, in one walk, and none that is where it was when its turn comes", () => {
    const walks: Generator<void, void>[] = [];
    room = new BindingRoom(LIMITS, moving[0], (_, work) => walks.push(work));
    put("old", 1);
    const young = [put("b", 2, 1.9), put("c", 3, 1.9)];
    for (const units of [1.9, 1, 1.9, 1]) put("old", 1, units);
    assert.equal(walks.length, 1);
    finish(walks[0] as Generator<void, void>);
    assert.deepEqual([moved, young.map(isWhole)], [[], [true, true]]);
    put("old", 1, 1.9);
    assert.deepEqual([walks.length, young.map(isWhole)], [2, [true, true]]);
    finish(walks[1] as Generator<void, void>);
    assert.deepEqual([moved, young.map(isWhole)], [["team/c"], [true, false]]);
  });

  it("does not count the conditions, so that a report changes nothing", () => {
    const condition = {
      type: "Ready",
      status: "False" as const,
      reason: "TooLarge",
      message: "",
      lastTransitionTime: "",
    };
    const without = bindingOf({ status: { observedGeneration: 1 } }) as StoredBinding;
    const reported = bindingOf({ status: { observedGeneration: 1, conditions: [condition] } }) as StoredBinding;
    assert.equal(bindingLength(reported), bindingLength(without));
  });

  it("decides by the bindings alone", () => {
    const one = fc.record({
      second: fc.integer({ min: 0, max: 9 }),
      units: fc.double({ min: 1, max: 2.5, noNaN: true }),
    });
    const names = "abcdefgh";
    fc.assert(
      fc.property(fc.array(one, { maxLength: names.length }), fc.infiniteStream(fc.nat()), (all, order) => {
        const decide = (inOrder: number[]) => {
          room = new BindingRoom(LIMITS, () => {}, finished);
          const entries = new Map<number, Entry<StoredBinding>>();
          // Each is put twice, as by a list after a watch.
          for (const n of [...inOrder, ...inOrder.toReversed()]) {
            const { second, units } = all[n] as (typeof all)[number];
            entries.set(n, put(names[n] as string, second, units));
          }
          return all.map((_, n) => room.excessOf(entries.get(n) as Entry<StoredBinding>)?.limit);
        };
        const numbers = all.map((_, n) => n);
        const shuffled = numbers.map((n) => [order.next().value, n]).sort(([a = 0], [b = 0]) => a - b);
        assert.deepEqual(decide(shuffled.map(([, n]) => n as number)), decide(numbers));
      }),
    );
  });
});
