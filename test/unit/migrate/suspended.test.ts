/** A binding that lost a condition is suspended, so that it writes to no more objects than the other tool did. */
import assert from "node:assert/strict";
import type { JsonObject } from "../../../src/apimachinery/objects.ts";
import { KYVERNO } from "../../../src/migrate/kyverno.ts";
import { migrate } from "../../../src/migrate/migration.ts";

const policy = (exclude: object, generate: object) => ({
  apiVersion: "kyverno.io/v1",
  kind: "ClusterPolicy",
  metadata: { name: "sync" },
  spec: {
    generateExisting: true,
    rules: [
      {
        name: "clone",
        match: { any: [{ resources: { kinds: ["Namespace"] } }] },
        exclude: { any: [exclude] },
        generate: { namespace: "{{request.object.metadata.name}}", synchronize: true, ...generate },
      },
    ],
  },
});
const CLONE = { apiVersion: "v1", kind: "Secret", name: "a", clone: { namespace: "platform", name: "a" } };
const cloneList = (kind: string) => ({ cloneList: { kinds: [`v1/${kind}`], namespace: "platform" } });
const NAMED = { resources: { names: ["kube-*"] } };
const LABELLED = { resources: { selector: { matchLabels: { team: "web", stage: "test" } } } };

/** What is cloned. */
const SOURCE = { apiVersion: "v1", kind: "Secret", metadata: { name: "a", namespace: "platform" }, type: "Opaque" };

function converted(exclude: object, generate: object): JsonObject {
  const { converted: objects } = migrate(
    KYVERNO,
    [policy(exclude, generate), SOURCE].map((object) => ({ name: "a", text: JSON.stringify(object) })),
    "x",
  );
  return objects[0]?.object["spec"] as JsonObject;
}

describe("a binding without a condition of the other tool", () => {
  it("is suspended, and all others are not", () => {
    assert.equal(converted(LABELLED, CLONE)["suspend"], true);
    assert.equal(converted({ subjects: [{ kind: "User", name: "alice" }] }, CLONE)["suspend"], true);
    assert.equal(converted(NAMED, CLONE)["suspend"], undefined);
  });

  it("is not suspended if a composition creates it, because its copies take the type and the metadata of the source", () => {
    for (const kind of ["ConfigMap", "Secret"]) {
      const [entry] = converted(NAMED, cloneList(kind))["bindings"] as {
        base: { spec: { suspend?: boolean; targets: { create: JsonObject }[] } };
      }[];
      assert.equal(entry?.base.spec.suspend, undefined);
      assert.deepEqual(entry?.base.spec.targets[0]?.create["copy"], { labels: ["*"], annotations: ["*"] });
    }
  });
});
