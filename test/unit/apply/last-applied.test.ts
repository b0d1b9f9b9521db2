/** When a target that this binding wrote need not be read before the next write. */
import assert from "node:assert/strict";
import type { TargetStatus } from "../../../src/api/binding.ts";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonValue } from "../../../src/apimachinery/objects.ts";
import { MissingValue } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { type Desired, decide } from "../../../src/apply/decide.ts";
import { decideByLastApplied, digestOf, wasSent } from "../../../src/apply/last-applied.ts";
import { recordOf as syncedRecordOf } from "../objects.ts";
import { entry, liveObject, OURS, shape } from "./managed.ts";

const KEY = "spec.s3.key";
const OTHER = "spec.s3.other";
const version = { uid: "uid-1", resourceVersion: "7", generation: 1 };

function desired(want: Record<string, JsonValue>, more: Partial<Desired["plan"]> = {}): Desired {
  const fields = Object.entries(want).map(([path, value]) => ({
    path: FieldPath.parse(path),
    value: new SecretValue(value),
    fromSecret: true,
  }));
  return { plan: { fields, omitted: [], ...more }, shape: shape(), fieldManager: OURS, onConflict: "Fail" };
}

const recordOf = (more: Partial<TargetStatus>) => syncedRecordOf({ uid: "uid-1", ...more });

describe("a target that is as last applied", () => {
  const values = digestOf(desired({ [KEY]: "old" })) as string;

  it("is written like one that was read", () => {
    const record = recordOf({ paths: [KEY] });
    const live = liveObject({ spec: { s3: { key: "old" } } }, [entry(OURS, [KEY])]);
    const read = decide(desired({ [KEY]: "new" }), live, record);
    const unread = decideByLastApplied(desired({ [KEY]: "new" }), record, { version, values });
    assert.deepEqual({ ...unread, differing: [KEY] }, read);
  });

  it("is not written if its values are those of the last write", () => {
    assert.equal(
      decideByLastApplied(desired({ [KEY]: "old" }), recordOf({ paths: [KEY] }), { version, values })?.write,
      false,
    );
  });

  it("is read if the binding owns other fields than it should", () => {
    for (const record of [
      recordOf({ paths: [] }),
      recordOf({ paths: [KEY, OTHER] }),
      recordOf({ paths: [OTHER] }),
      recordOf({ paths: [KEY], uid: "uid-0" }),
      recordOf({ paths: [KEY], pendingPaths: [KEY] }),
    ])
      assert.equal(decideByLastApplied(desired({ [KEY]: "new" }), record, { version, values }), undefined);
  });

  it("is read if the values alone don't determine its state", () => {
    const why = new MissingValue("KeyNotFound", "no key", { onMissing: "Wait", optional: true });
    for (const each of [
      desired({ [KEY]: { a: "b" } }),
      desired({ [KEY]: ["a"] }),
      desired({ "spec.list[0].key": "a" }),
      desired({ "spec.list[name=web].key": "a" }),
      desired({ [KEY]: "a" }, { omitted: [{ path: FieldPath.parse(OTHER), why }] }),
      desired({ [KEY]: "a" }, { kept: [] }),
    ])
      assert.equal(digestOf(each), undefined);
  });

  it("is read if a field belongs to an atomic object", () => {
    const atomic = { ...desired({ [KEY]: "new" }), shape: shape({}, [], ["spec.s3"]) };
    assert.equal(decideByLastApplied(atomic, recordOf({ paths: [KEY] }), { version, values }), undefined);
  });

  it("has a digest of all its values and paths, with a secret key", () => {
    const digests = [
      desired({ [KEY]: "1" }),
      desired({ [KEY]: 1 }),
      desired({ [KEY]: 12345678901234567890n }),
      desired({ [OTHER]: "1" }),
      desired({ [KEY]: "1", [OTHER]: "2" }),
      desired({ [KEY]: null }),
    ].map(digestOf);
    assert.equal(new Set(digests).size, digests.length);
    for (const digest of digests) assert.match(digest ?? "", /^[A-Za-z0-9+/]{43}=( [A-Za-z0-9+/]{43}=)*$/);
    assert.equal(digestOf(desired({ [KEY]: "1" })), digests[0]);
  });

  it("shows which value was sent to a path", () => {
    const last = { version, values: digestOf(desired({ [KEY]: "1", [OTHER]: "2" })) as string };
    const sent = (path: string, value: JsonValue | undefined) => wasSent(last, FieldPath.parse(path), value);
    assert.deepEqual(
      [sent(KEY, "1"), sent(OTHER, "2"), sent(KEY, "2"), sent(KEY, undefined)],
      [true, true, false, false],
    );
  });
});
