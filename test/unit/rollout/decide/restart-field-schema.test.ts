/** A field to restart by is held against the kind's schema, with a text such as will be written. */
import assert from "node:assert/strict";
import type { RolloutSpec } from "../../../../src/api/rollout.ts";
import { FieldPath } from "../../../../src/apimachinery/field-path.ts";
import { wrongRestartField } from "../../../../src/rollout/decide/restart-field-schema.ts";
import { lookupOf, rolloutSpecOf } from "../../objects.ts";
import { HARBORS } from "../../resources.ts";

const text = { type: "string" as const };
const root = {
  type: "object" as const,
  properties: {
    metadata: { type: "object" as const },
    spec: {
      type: "object" as const,
      properties: {
        restartAt: { ...text, pattern: "^[-0-9]+T[:0-9]+Z$" },
        trigger: { ...text, maxLength: 10 },
        nodes: { type: "integer" as const },
      },
    },
  },
};

async function wrong(
  path: string,
  value: RolloutSpec["stamp"]["value"] = "Revision",
  isPublished = true,
): Promise<string | undefined> {
  const schemas = { of: async () => (isPublished ? { root, resolve: () => undefined } : undefined) };
  const lookup = lookupOf({ resource: HARBORS, paths: { restart: path }, stampAt: FieldPath.parse(path) });
  const spec = rolloutSpecOf({ stamp: { annotation: "inlay.dev/rollout", value } });
  const problem = await wrongRestartField(schemas, [lookup], spec);
  return problem?.reason;
}

describe("a field to restart by", () => {
  it("is one that the kind has, and takes what is written there", async () => {
    assert.equal(await wrong("spec.restartAt"), undefined);
    assert.equal(await wrong('metadata.annotations["restartedAt"]'), undefined);
    assert.equal(await wrong("spec.restart"), "UnknownField");
    assert.equal(await wrong("spec.nodes"), "TypeMismatch");
    assert.equal(await wrong("spec.trigger"), "InvalidValue");
    assert.equal(await wrong("spec.trigger", "ResourceVersion"), undefined);
  });

  it("is any where the kind publishes no schema", async () => {
    assert.equal(await wrong("spec.restart", "Revision", false), undefined);
  });

  it("is asked about only where there is one", async () => {
    const schemas = { of: () => Promise.reject(new Error("it is asked")) };
    assert.equal(await wrongRestartField(schemas, [lookupOf()], rolloutSpecOf()), undefined);
  });
});
