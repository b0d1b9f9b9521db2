/** Which bindings are kept whole, whatever the order in which they arrive. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { bindingKey, type StoredBinding } from "../../../src/api/binding.ts";
import { bindingLength, isStub } from "../../../src/api/stub.ts";
import { BindingRoom } from "../../../src/cache/binding-room.ts";
import type { Entry } from "../../../src/cache/resource-store.ts";
import { bindingOf } from "../objects.ts";

const EMPTY = bindingLength(bindingOf({ metadata: { name: "a", namespace: "team" }, status: {} }) as StoredBinding);
const LIMITS = { bindingBytes: 2 * EMPTY, bindingBytesPerNamespace: 5 * EMPTY };

describe("the room for bindings", () => {
  let room: BindingRoom;
  let moved: string[];
  beforeEach(() => {
    moved = [];
    room = new BindingRoom(LIMITS, ({ object }) => moved.push(bindingKey(object)));
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
          room = new BindingRoom(LIMITS, () => {});
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
