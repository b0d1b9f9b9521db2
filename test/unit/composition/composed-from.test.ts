/** The labels and annotations of a composed binding, and which of them count in the status of a composition. */
import assert from "node:assert/strict";
import type { StoredBinding } from "../../../src/api/binding.ts";
import { composedFrom } from "../../../src/api/composed.ts";
import type { ClaimRecord } from "../../../src/controllers/composition/composition-state.ts";
import { countBindings } from "../../../src/controllers/composition/composition-status.ts";

const marked = (name: string, claim: string, template = "s3") =>
  ({
    metadata: {
      namespace: "shop",
      name,
      labels: {
        "inlay.dev/composition": "harbors",
        "inlay.dev/composition-binding": template,
        "inlay.dev/claim-uid": "1",
      },
      annotations: { "inlay.dev/claim": claim },
    },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  }) as unknown as StoredBinding;

describe("the marks of a composition", () => {
  it("are ignored if the claim has no name", () => {
    assert.equal(composedFrom(marked("harbor-s3", "")), undefined);
    assert.equal(composedFrom(marked("harbor-s3", "shop/harbor"))?.claim, "shop/harbor");
  });

  it("count only for bindings of existing claims", () => {
    const record = {
      uid: "1",
      desired: new Map([["shop/harbor-s3", undefined as never]]),
      held: new Set(["held"]),
      problems: [],
      size: 0,
    } satisfies ClaimRecord;
    const all = [
      marked("harbor-s3", "shop/harbor"),
      marked("harbor-held", "shop/harbor", "held"),
      marked("forged", "shop/harbor"),
      marked("other", "shop/other"),
      marked("nameless", ""),
    ];
    assert.deepEqual(countBindings("harbors", all, new Map([["shop/harbor", record]])), { bindings: 2, ready: 2 });
  });
});
