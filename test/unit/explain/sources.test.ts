/** The SecretGrants that allow a binding, as far as explain can know without the controller. */
import assert from "node:assert/strict";
import { byLabelAtMost } from "../../../src/explain/sources.ts";
import type { ProducedBy } from "../../../src/sources/grant-rules.ts";

const forHarbors = (composition: ProducedBy) =>
  typeof composition === "object" && composition.by === "harbors" ? ["by-composition"] : [];

describe("the grants of a source", () => {
  it("rely on the label of a composition only if no other grant allows the binding, with a message", () => {
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
