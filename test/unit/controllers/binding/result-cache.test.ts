/** What is remembered of targets that came to an end, and when they have to be looked at again. */
import assert from "node:assert/strict";
import type { Target } from "../../../../src/api/binding.ts";
import type { Version } from "../../../../src/apimachinery/objects.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import type { View } from "../../../../src/controllers/binding/observed-state.ts";
import { Settled } from "../../../../src/controllers/binding/result-cache.ts";
import type { Named } from "../../../../src/targets/sync.ts";
import { CONFIGMAPS } from "../../resources.ts";

const each: Named = {
  target: { fields: [] } as unknown as Target,
  ref: { resource: CONFIGMAPS, namespace: "team", name: "a" },
  record: { apiVersion: "v1", kind: "ConfigMap", namespace: "team", name: "a", reason: "Synced" },
};
const version = (uid: string, resourceVersion: string): Version => ({ uid, resourceVersion, generation: undefined });

/** A view in which the stream shows that version, and nothing else matters. */
function showing(seen: Version | undefined): View {
  const shown: View["shown"] = (_ref, known) =>
    seen && known?.uid === seen.uid && Number(known.resourceVersion) > Number(seen.resourceVersion) ? known : seen;
  const stateOf: View["stateOf"] = (_target, _ref, _record, _isSynced, at) => JSON.stringify(at ?? "none");
  return { shown, stateOf, fingerprint: () => "" } as unknown as View;
}

/** Whether a target that stood at `stands`, as the stream showed `before`, need not be looked at as it shows `now`. */
function isSettled(stands: Version, before: Version | undefined, now: Version | undefined): boolean {
  const settled = new Settled();
  const outcome = { record: each.record, stands: { ref: each.ref, version: stands } };
  settled.set("team/b", showing(before), [each], [outcome as never], undefined);
  return settled.endingsOf("team/b", showing(now), [each]).has(each);
}

describe("a target that was settled", () => {
  const made = version("u", "5");

  it("is not looked at while the stream shows what we know, or has yet to", () => {
    assert.ok(isSettled(made, version("u", "4"), made));
    assert.ok(isSettled(made, version("u", "4"), version("u", "4")));
  });

  it("is looked at when it changed", () => {
    assert.ok(!isSettled(made, version("u", "4"), version("u", "6")));
    assert.ok(!isSettled(made, version("u", "4"), version("v", "6")));
  });

  it("is looked at when it went before the stream had shown that it came", () => {
    assert.ok(!isSettled(made, undefined, undefined));
    assert.ok(!isSettled(made, version("former", "3"), version("former", "3")));
  });

  it("is looked at again where time may help", () => {
    const settled = new Settled();
    for (const [problem, remembered] of [
      [new Problem("Conflict", "taken"), true],
      [new Problem("SourceNotFound", "gone"), true],
      [new Problem("Forbidden", "may not"), false],
      [new Problem("Rejected", "no"), false],
      [new Problem("InvalidValue", "a rule of its schema"), false],
    ] as const) {
      settled.set("team/b", showing(made), [each], [{ record: each.record, problem }], undefined);
      assert.equal(settled.endingsOf("team/b", showing(made), [each]).has(each), remembered, problem.reason);
    }
    settled.set("team/b", showing(made), [each], [{ record: each.record, againMs: 1_000 }], undefined);
    assert.equal(settled.endingsOf("team/b", showing(made), [each]).size, 0);
  });
});
