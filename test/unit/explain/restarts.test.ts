/** Whether a binding restarts a workload whose pods refer to its source. */
import assert from "node:assert/strict";
import { type Referrer, restarterOf } from "../../../src/explain/restarts.ts";
import { compileTemplate } from "../../../src/transform/template.ts";
import { bindingOf, harbor, KINDS } from "../bindings.ts";

const bucket = { kind: "Secret", namespace: "registry", name: "bucket" } as const;
const core: Referrer = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  name: "core",
  labels: { app: "core" },
  owners: ["uid-of-harbor"],
};
const read = (text: string) => compileTemplate(text).references;
const does = (spec: object, { workload = core, traced = bucket, status = {} } = {}) =>
  restarterOf(bindingOf(spec, status), traced, read)(workload);
const rollout = (more: object) => ({ rollout: { kinds: KINDS, ...more } });

describe("whether a binding restarts a workload", () => {
  it("is no without a rollout, and for what is none of its sources", () => {
    assert.equal(does({}), false);
    const other = { ...bucket, namespace: "elsewhere" };
    assert.equal(does(rollout({ consumersOf: ["bucket"] }), { traced: other as typeof bucket }), false);
  });

  it("is told by consumersOf and kinds", () => {
    assert.equal(does(rollout({ consumersOf: ["bucket"] })), true);
    assert.equal(does(rollout({ consumersOf: ["other"] })), false);
    assert.equal(does(rollout({ consumersOf: ["bucket"], kinds: ["StatefulSet"] })), false);
    const knative = { ...core, apiVersion: "serving.example.com/v1" };
    assert.equal(does(rollout({ consumersOf: ["bucket"] }), { workload: knative }), false);
  });

  it("is told by the name that the binding gives the source", () => {
    const sources = [{ name: "s3", secret: { name: "bucket", namespace: "registry" } }];
    assert.equal(does({ sources, ...rollout({ consumersOf: ["s3"] }) }), true);
    assert.equal(does({ sources, ...rollout({ consumersOf: ["bucket"] }) }), false);
  });

  it("is told by name, by globs and by labels", () => {
    const by = (target: object) => does(rollout({ targets: [{ kind: "Deployment", ...target }] }));
    assert.equal(by({ name: "core" }), true);
    assert.equal(by({ name: "other" }), false);
    assert.equal(by({ selector: { names: ["c*"] } }), true);
    assert.equal(by({ selector: { names: ["x*"] } }), false);
    assert.equal(by({ selector: { names: ["c*"], exceptNames: ["core"] } }), false);
    assert.equal(by({ selector: { exceptNames: ["core-*"] } }), true);
    assert.equal(by({ selector: { matchLabels: { app: "core" } } }), true);
    assert.equal(by({ selector: { matchLabels: { app: "other" } } }), false);
    assert.equal(by({ apiVersion: "other.example.com/v1", name: "core" }), false);
  });

  it("of those that are named is no when the fields of the binding use nothing of the source", () => {
    const named = rollout({ targets: [{ kind: "Deployment", name: "core" }] });
    const sources = [{ secret: { name: "bucket" } }, { secret: { name: "other" } }];
    assert.equal(does({ sources, targets: [harbor()], ...named }), true);
    const others = harbor([{ path: "spec.key", from: { source: "other", key: "key" } }]);
    assert.equal(does({ sources, targets: [others], ...named }), false);
  });

  it("is told by what belongs to a target", () => {
    const owned = { targets: [harbor()], ...rollout({ ownedByTargets: true }) };
    const status = { targets: [{ kind: "HarborCluster", name: "harbor", uid: "uid-of-harbor", reason: "Synced" }] };
    assert.equal(does(owned, { status }), true);
    assert.equal(does(owned), false);
  });

  it("is told by any of its steps", () => {
    const steps = [
      { name: "one", kinds: ["DaemonSet"], consumersOf: ["bucket"] },
      { name: "two", kinds: KINDS, consumersOf: ["bucket"] },
    ];
    assert.equal(does({ rollout: { steps } }), true);
    assert.equal(does({ rollout: { steps: steps.slice(0, 1) } }), false);
  });
});
