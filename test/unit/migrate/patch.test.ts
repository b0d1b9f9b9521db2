/** Patches of JSON whose operations Inlay does not have: each is reported, and none becomes a field. */
import assert from "node:assert/strict";
import { migrate } from "../../../src/migrate/migration.ts";
import { PATCH_OPERATOR } from "../../../src/migrate/patch-operator.ts";

const template = `- op: replace
  path: /spec/{{ (index . 1).data.one }}
  value: a
- op: replace
  path: /spec/{{ (index . 1).data.two }}
  value: b
- op: replace
  path: /spec/host
  value: "{{ (index . 1).data.host }}"
`;
const patch = {
  apiVersion: "redhatcop.redhat.io/v1alpha1",
  kind: "Patch",
  metadata: { name: "p", namespace: "shop" },
  spec: {
    patches: {
      p: {
        targetObjectRef: { apiVersion: "v1", kind: "ConfigMap", name: "target", namespace: "shop" },
        sourceObjectRefs: [{ apiVersion: "v1", kind: "ConfigMap", name: "source", namespace: "shop" }],
        patchType: "application/json-patch+json",
        patchTemplate: template,
      },
    },
  },
};

describe("a patch of JSON", () => {
  it("reports each path that has a template", () => {
    const { converted, lost } = migrate(PATCH_OPERATOR, [{ name: "a", text: JSON.stringify(patch) }], "shop");
    const spec = converted[0]?.object["spec"] as { targets: { fields: { path: string }[] }[] };
    assert.deepEqual(
      spec.targets[0]?.fields.map(({ path }) => path),
      ["spec.host"],
    );
    assert.equal(lost.filter(({ message }) => message.includes("fixed paths")).length, 2);
  });
});
