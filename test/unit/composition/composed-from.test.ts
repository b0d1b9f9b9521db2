/** The labels and annotations of a composed binding, and which of them count in the status of a composition. */
import assert from "node:assert/strict";
import type { StoredBinding } from "../../../src/api/binding.ts";
import { composedFrom } from "../../../src/api/composed.ts";
import type { ClaimRecord } from "../../../src/controllers/composition/composition-state.ts";
import { countBindings } from "../../../src/controllers/composition/composition-status.ts";

const READY = [{ type: "Ready", status: "True" }];
const marked = (name: string, claim: string, template = "s3", conditions: object[] = READY, observedGeneration = 2) =>
  ({
    metadata: {
      namespace: "shop",
      name,
      generation: 2,
      labels: {
        "inlay.dev/composition": "harbors",
        "inlay.dev/composition-binding": template,
        "inlay.dev/claim-uid": "1",
      },
      annotations: { "inlay.dev/claim": claim },
    },
    status: { conditions, observedGeneration },
  }) as unknown as StoredBinding;

describe("the marks of a composition", () => {
  it("are ignored if the claim has no name", () => {
    assert.equal(composedFrom(marked("harbor-s3", "")), undefined);
    assert.equal(composedFrom(marked("harbor-s3", "shop/harbor"))?.claim, "shop/harbor");
  });

  it("count only for bindings of existing claims, whose status is of their present spec", () => {
    const record = {
      uid: "1",
      desired: new Map(["s3", "stalled", "outdated"].map((name) => [`shop/harbor-${name}`, undefined as never])),
      held: new Set(["held"]),
      problems: [],
      size: 0,
    } satisfies ClaimRecord;
    const stalled = [{ type: "Ready", status: "False" }, { type: "Stalled" }];
    const all = [
      marked("harbor-stalled", "shop/harbor", "s3", stalled),
      marked("harbor-outdated", "shop/harbor", "s3", stalled, 1),
      marked("harbor-s3", "shop/harbor"),
      marked("harbor-held", "shop/harbor", "held"),
      marked("forged", "shop/harbor"),
      marked("other", "shop/other"),
      marked("nameless", ""),
    ];
    const counts = countBindings("harbors", all, new Map([["shop/harbor", record]]));
    assert.deepEqual(counts, { bindings: 4, ready: 2, stalled: 1 });
  });
});
