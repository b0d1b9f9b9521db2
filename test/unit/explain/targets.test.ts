/** Objects in an explanation that the binding no longer names. */
import assert from "node:assert/strict";
import { leftovers } from "../../../src/explain/targets.ts";
import { recordOf } from "../objects.ts";

describe("the leftovers of an explanation", () => {
  it("are one target each, except that selected objects are grouped, those with problems first", () => {
    const selected = Array.from({ length: 30 }, (_, at) =>
      recordOf({ namespace: `team-${at}`, selected: true, reason: at < 28 ? "Synced" : "Forbidden" }),
    );
    const records = [recordOf({ name: "one", paths: ["spec.key"] }), ...selected, recordOf({ name: "two" })];
    assert.deepEqual(
      leftovers(records).map(({ selects, objects, more }) => [selects, objects.length, more]),
      [
        [false, 1, 0],
        [true, 20, 10],
        [false, 1, 0],
      ],
    );
    const [one, many] = leftovers(records);
    assert.deepEqual(one?.objects[0]?.fields, [{ path: "spec.key", held: true }]);
    assert.deepEqual(
      many?.objects.slice(0, 3).map(({ namespace, status }) => [namespace, status?.reason]),
      [
        ["team-28", "Forbidden"],
        ["team-29", "Forbidden"],
        ["team-0", "Synced"],
      ],
    );
  });
});
