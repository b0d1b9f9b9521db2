/** Where the workloads of a binding are looked for, and what an installation has to say of that. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../../src/api/binding.ts";
import { Installation, type WriteRule } from "../../../../src/api/installation.ts";
import type { RolloutSpec } from "../../../../src/api/rollout.ts";
import { FieldPath } from "../../../../src/apimachinery/field-path.ts";
import type { Discovery } from "../../../../src/kube/discovery.ts";
import { resolveRollout } from "../../../../src/rollout/discover/lookups.ts";
import { CONFIGMAPS } from "../../resources.ts";

const DISCOVERY = {
  byKind: async (_: string, kind: string) => ({ ...CONFIGMAPS, group: "apps", kind }),
} as unknown as Discovery;
const BINDING = { metadata: { namespace: "registry" }, spec: { sources: [] } } as unknown as SecretBinding;
const ROLLOUT = {
  targets: [{ kind: "Deployment", name: "core" }],
  stamp: { annotation: "inlay.dev/rollout", value: "Revision" },
  timeout: "10m",
} as unknown as RolloutSpec;

const restarting = (restartPath: string) => ({
  ...ROLLOUT,
  targets: [{ apiVersion: "example.com/v1", kind: "Cluster", name: "main", restartPath }],
});

async function problemWith(rules: { deny?: WriteRule[]; allow?: WriteRule[] }, rollout: RolloutSpec = ROLLOUT) {
  const installation = new Installation({ ownNamespace: "inlay-system", ...rules });
  return (await resolveRollout(BINDING, rollout, new Map(), DISCOVERY, installation)).problem?.reason;
}
const rule = (path: string) => [{ kinds: ["Deployment"], paths: [FieldPath.parse(path)] }];

describe("where workloads are looked for", () => {
  it("is held against the installation by the one annotation that is written", async () => {
    assert.equal(await problemWith({}), undefined);
    assert.equal(await problemWith({ deny: rule("spec.template") }), "ForbiddenPath");
    assert.equal(
      await problemWith({ deny: rule('spec.template.metadata.annotations["inlay.dev/rollout"]') }),
      "ForbiddenPath",
    );
    assert.equal(await problemWith({ deny: rule("spec.template.spec.containers") }), undefined);
    assert.equal(await problemWith({ allow: rule("spec.template.metadata.annotations") }), undefined);
    assert.equal(await problemWith({ allow: rule("spec.replicas") }), "ForbiddenPath");
  });

  it("may be a kind without a pod template, which restarts on a field that a binding may write", async () => {
    const deny = [{ kinds: ["Cluster"], paths: [FieldPath.parse("spec")] }];
    assert.equal(await problemWith({}, restarting("spec.restartAt")), undefined);
    assert.equal(await problemWith({ deny }, restarting("spec.restartAt")), "ForbiddenPath");
    assert.equal(await problemWith({ deny }, restarting('metadata.annotations["restartedAt"]')), undefined);
    assert.equal(await problemWith({}, restarting("metadata.finalizers")), "ForbiddenPath");
    assert.equal(await problemWith({}, restarting("status.restartAt")), "ForbiddenPath");
    assert.equal(await problemWith({}, restarting("spec.nodes[0].restartAt")), "InvalidPath");
  });
});
