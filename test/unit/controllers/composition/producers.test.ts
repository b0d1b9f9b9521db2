/** Which composition generates a labelled binding, and when the binding controller is called back. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../../src/api/binding.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import type { ClaimKind } from "../../../../src/composition/allowed-paths.ts";
import type { CompiledComposition } from "../../../../src/composition/compile.ts";
import type { ClaimOwner, DesiredBinding } from "../../../../src/composition/made-binding.ts";
import { CompositionState } from "../../../../src/controllers/composition/composition-state.ts";
import { Producers } from "../../../../src/controllers/composition/controller.ts";

const CLAIM = "shop/harbor";
const binding = {
  metadata: {
    namespace: "shop",
    name: "harbor-s3",
    labels: { "inlay.dev/composition": "harbors", "inlay.dev/composition-binding": "s3", "inlay.dev/claim-uid": "1" },
    annotations: { "inlay.dev/claim": CLAIM },
  },
} as unknown as SecretBinding;

describe("the composition of a binding", () => {
  let exists: boolean | undefined;
  let state: CompositionState | undefined;
  let changed: string[];
  let producers: Producers;

  beforeEach(() => {
    [exists, state, changed] = [true, undefined, []];
    producers = new Producers({
      exists: () => exists,
      stateOf: () => state,
      claims: { get: () => "unknown" },
      index: { bindingsOf: () => [binding], allOf: () => [binding] },
    });
    producers.onChange((key) => changed.push(key));
  });

  it("is pending until the compositions are listed, and none if the composition does not exist", () => {
    exists = undefined;
    assert.equal(producers.of(binding), "pending");
    producers.listed();
    assert.deepEqual(changed, []);
    exists = false;
    producers.listed();
    assert.deepEqual(changed, ["shop/harbor-s3"]);
    assert.equal(producers.of(binding), "none");
  });

  it("is pending until the composition was reconciled, and unknown afterwards while it is not accepted", () => {
    assert.equal(producers.of(binding), "pending");
    state = new CompositionState();
    assert.equal(producers.of(binding), "pending");
    state.problem = new Problem("InvalidComposition", "a mistake");
    state.isConsidered = true;
    producers.considered("harbors");
    assert.deepEqual(changed, ["shop/harbor-s3"]);
    assert.equal(producers.of(binding), "unknown");
  });

  it("is pending until the claim was reconciled, and unknown if the claim can't be seen", () => {
    state = new CompositionState();
    state.accepted = {} as CompositionState["accepted"];
    state.isConsidered = true;
    assert.equal(producers.of(binding), "pending");
    state.isListed = true;
    state.pending.add(CLAIM);
    assert.equal(producers.of(binding), "pending");
    state.pending.delete(CLAIM);
    producers.known("harbors", CLAIM);
    assert.deepEqual(changed, ["shop/harbor-s3"]);
    assert.equal(producers.of(binding), "unknown");
  });

  it("is the one that wants the binding as it is, with the namespace of the claim, which may be another one", () => {
    const ofKind = (kind: ClaimKind, owner: ClaimOwner) => {
      state = new CompositionState();
      const compiled = { kind } as CompiledComposition;
      const generated = { isAsGenerated: () => true };
      state.accepted = { compiled, generated } as unknown as CompositionState["accepted"];
      const desired = new Map([["shop/harbor-s3", { owner } as DesiredBinding]]);
      state.record(CLAIM, { uid: "1", desired, held: new Set(), problems: [], size: 0 });
      return producers.of(binding);
    };
    const owner = { apiVersion: "example.com/v1", kind: "Shop", name: "harbor", uid: "1" };
    const shop = { group: "example.com", kind: "Shop", namespaced: true };
    assert.deepEqual(ofKind(shop, { ...owner, namespace: "team" }), { by: "harbors", claimNamespace: "team" });
    assert.deepEqual(ofKind({ ...shop, namespaced: false }, owner), { by: "harbors" });
    const namespace = { group: "", kind: "Namespace", namespaced: false };
    assert.deepEqual(ofKind(namespace, { ...owner, apiVersion: "v1", kind: "Namespace" }), {
      by: "harbors",
      claimNamespace: "harbor",
    });
  });

  it("is pending while Inlay updates the binding, and unknown while it differs for another reason", () => {
    let underWay = true;
    state = new CompositionState();
    const generated = { isAsGenerated: () => false, isUnderWay: () => underWay };
    state.accepted = { generated } as unknown as CompositionState["accepted"];
    const desired = new Map([["shop/harbor-s3", {} as DesiredBinding]]);
    state.record(CLAIM, { uid: "1", desired, held: new Set(), problems: [], size: 0 });
    assert.equal(producers.of(binding), "pending");
    state.isSuspended = true;
    assert.equal(producers.of(binding), "unknown");
    state.isSuspended = false;
    underWay = false;
    producers.known("harbors", CLAIM);
    assert.deepEqual(changed, ["shop/harbor-s3"]);
    assert.equal(producers.of(binding), "unknown");
  });

  it("is asked for again when the composition is deleted, whether it was known or not", () => {
    producers.gone("harbors");
    assert.deepEqual(changed, ["shop/harbor-s3"]);
  });
});
