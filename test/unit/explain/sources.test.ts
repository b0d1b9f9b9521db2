/** Which SecretGrants a binding is said to be allowed by, as far as can be told without the controller. */
import assert from "node:assert/strict";
import { byLabelAtMost } from "../../../src/explain/sources.ts";
import type { ProducedBy } from "../../../src/sources/grant-rules.ts";

const forHarbors = (composition: ProducedBy) =>
  typeof composition === "object" && composition.by === "harbors" ? ["by-composition"] : [];

describe("the grants of a source", () => {
  it("go by the label of a composition only where no other allows the binding, and it is said so", () => {
    const { message = "", ...found } = byLabelAtMost("harbors", forHarbors) ?? {};
    assert.deepEqual(found, { state: "Found", names: ["by-composition"] });
    assert.ok(message.includes("BindingComposition harbors"));
    for (const label of [undefined, "others"]) assert.equal(byLabelAtMost(label, forHarbors), undefined);
    assert.deepEqual(
      byLabelAtMost("harbors", () => ["own"]),
      { state: "Found", names: ["own"] },
    );
  });
});
