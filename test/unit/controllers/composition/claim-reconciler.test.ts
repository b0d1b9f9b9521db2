/** The problems of a claim that the controller records and reports: all of them up to a limit, with the sentences of `inlay render`. */
import assert from "node:assert/strict";
import type { BindingComposition, Patch } from "../../../../src/api/composition.ts";
import { DEFAULT_LIMITS } from "../../../../src/api/limits.ts";
import type { CachedObject } from "../../../../src/cache/cached-object.ts";
import { compileComposition } from "../../../../src/composition/compile.ts";
import { ClaimReconciler } from "../../../../src/controllers/composition/claim-reconciler.ts";
import {
  type AcceptedComposition,
  CompositionState,
} from "../../../../src/controllers/composition/composition-state.ts";
import { activeStatus } from "../../../../src/controllers/composition/composition-status.ts";
import { CpuScheduler } from "../../../../src/workqueue/cpu-scheduler.ts";
import { BASE, SHOPS, specOf } from "../../composition/compositions.ts";
import { renderTexts } from "../../render/texts.ts";

const SIZE = { fromFieldPath: "spec.size", transforms: [{ type: "map" as const, map: { small: "s" } }] };
const NEEDED = { fromFieldPath: "spec.needed", policy: { fromFieldPath: "Required" as const } };
const OTHER = { ...NEEDED, fromFieldPath: "spec.other", toFieldPath: "metadata.labels[other]" };
const entry = (name: string, patches: Patch[]) => ({ name, base: BASE, patches });
const label = (patch: object, name: string) => ({ ...patch, toFieldPath: `metadata.labels[${name}]` }) as Patch;

function compositionOf(bindings: object[]): BindingComposition {
  const metadata = { name: "shops", uid: "1", resourceVersion: "1", generation: 1 };
  const kind = { apiVersion: "inlay.dev/v1alpha1", kind: "BindingComposition" };
  return { ...kind, metadata, spec: specOf([], { bindings }) } as unknown as BindingComposition;
}

/** Reconciles a claim whose bindings do not exist yet. */
async function reconciled(composition: BindingComposition, spec: object) {
  const events: string[] = [];
  const written: string[] = [];
  const reconciler = new ClaimReconciler({
    bindings: { get: () => undefined },
    index: { bindingsOf: () => [], want: () => {} },
    writer: { write: () => assert.fail() },
    events: { recordOn: (_, { note }) => void events.push(note) },
    cpu: new CpuScheduler(),
    metrics: { limited: () => assert.fail() },
    installation: { limits: DEFAULT_LIMITS },
  });
  const state = new CompositionState();
  state.accepted = {
    compiled: compileComposition(composition.spec, SHOPS),
    resource: { group: "example.com", version: "v1", kind: "Shop" },
    ownerApiVersion: "example.com/v1",
    generated: {
      sync: async (_: string, desired: { name: string }[]) => {
        written.push(...desired.map(({ name }) => name));
        return { retry: "never" };
      },
      failuresOf: () => new Map(),
    },
  } as unknown as AcceptedComposition;
  const ref = { composition: "shops", state, accepted: state.accepted, key: "team/shop" };
  await reconciler.reconcile(ref, { uid: "uid-1", fields: { spec } } as unknown as CachedObject);
  const counts = { bindings: 0, ready: 0, stalled: 0 };
  const { problems = [] } = activeStatus(composition, state, counts, undefined, new Date(0));
  return { written, events, problems, recorded: state.records.get("team/shop")?.problems ?? [] };
}

describe("the problems of a claim", () => {
  it("are all in the record, the status and events, and the same in a rendering; other bindings are created", async () => {
    const bindings = [entry("a", [label(SIZE, "size"), label(NEEDED, "needed")]), entry("b", [OTHER]), entry("c", [])];
    const composition = compositionOf(bindings);
    const { written, events, problems, recorded } = await reconciled(composition, { size: "huge" });
    const sentences = recorded.map(({ message }) => message);
    assert.deepEqual(sentences, [
      "bindings[a].patches[0]: spec.size: transforms[0]: map has no key for the value",
      "bindings[a].patches[1]: the claim has no spec.needed, so the binding is not created or changed; add the field to the claim",
      "bindings[b].patches[0]: the claim has no spec.other, so the binding is not created or changed; add the field to the claim",
    ]);
    assert.deepEqual(
      problems.map(({ claim, place, message }) => [claim, place, message]),
      sentences.map((each) => ["team/shop", each.split(":")[0], each]),
    );
    assert.deepEqual(
      events,
      sentences.map((each) => `BindingComposition shops: ${each}`),
    );
    assert.deepEqual(written, ["shop-c"]);
    const claim = { apiVersion: "example.com/v1", kind: "Shop", metadata: { name: "shop", namespace: "team" } };
    const texts = { a: JSON.stringify(composition), b: JSON.stringify({ ...claim, spec: { size: "huge" } }) };
    const { notMade } = await renderTexts(texts);
    assert.deepEqual(
      notMade.map(({ entry: name, message }) => [name, message]),
      sentences.map((each) => [/\[(.)\]/.exec(each)?.[1], each]),
    );
  });

  it("are at most ten in the record, and of several entries, the same problem counts once", async () => {
    const many = Array.from({ length: 20 }, (_, n) => label({ ...NEEDED, fromFieldPath: `spec.f${n}` }, `l${n}`));
    const { recorded, events } = await reconciled(compositionOf([entry("a", many), entry("b", many)]), {});
    assert.deepEqual([recorded.length, events.length], [10, 10]);
    const composition = compositionOf([entry("a", []), entry("b", [])]);
    Object.assign(composition.spec, {
      notSupported: ["x", "y"].map((each) => ({ fromFieldPath: `spec.${each}`, message: "no" })),
    });
    const unsupported = await reconciled(composition, { x: 1, y: 1 });
    assert.deepEqual(
      unsupported.recorded.map(({ message }) => message),
      ["notSupported[0]: spec.x: no", "notSupported[1]: spec.y: no"],
    );
  });
});
