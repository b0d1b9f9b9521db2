/** Whether a binding restarts a workload whose pods refer to an object that the binding reads or writes. */
import assert from "node:assert/strict";
import { copiesOf, type Referrer, restarterOf } from "../../../src/explain/trace.ts";
import { compileTemplate } from "../../../src/transform/template.ts";
import { bindingOf, harbor, KINDS } from "../bindings.ts";

const bucket = { kind: "Secret", namespace: "registry", name: "bucket" } as const;
const core: Referrer = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  namespace: "registry",
  name: "core",
  object: bucket,
  references: [{ by: "env", keys: ["key"] }],
  labels: { app: "core" },
  owners: ["uid-of-harbor"],
};
const read = (text: string) => compileTemplate(text).references;
const does = (spec: object, { workload = core, traced = bucket, status = {} } = {}) =>
  restarterOf(bindingOf(spec, status), traced, [], read)(workload);
const rollout = (more: object) => ({ rollout: { kinds: KINDS, ...more } });

describe("whether a binding restarts a workload", () => {
  it("is false without a rollout, and for an object that is not a source", () => {
    assert.equal(does({}), false);
    const other = { ...bucket, namespace: "elsewhere" };
    assert.equal(does(rollout({ consumersOf: ["bucket"] }), { traced: other as typeof bucket }), false);
  });

  it("depends on consumersOf and kinds", () => {
    assert.equal(does(rollout({ consumersOf: ["bucket"] })), true);
    assert.equal(does(rollout({ consumersOf: ["other"] })), false);
    assert.equal(does(rollout({ consumersOf: ["bucket"], kinds: ["StatefulSet"] })), false);
    const knative = { ...core, apiVersion: "serving.example.com/v1" };
    assert.equal(does(rollout({ consumersOf: ["bucket"] }), { workload: knative }), false);
  });

  it("depends on the name that the binding gives the source", () => {
    const sources = [{ name: "s3", secret: { name: "bucket", namespace: "registry" } }];
    assert.equal(does({ sources, ...rollout({ consumersOf: ["s3"] }) }), true);
    assert.equal(does({ sources, ...rollout({ consumersOf: ["bucket"] }) }), false);
  });

  it("depends on names, globs and labels", () => {
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

  it("is false for a named workload if no field uses the source", () => {
    const named = rollout({ targets: [{ kind: "Deployment", name: "core" }] });
    const sources = [{ secret: { name: "bucket" } }, { secret: { name: "other" } }];
    assert.equal(does({ sources, targets: [harbor()], ...named }), true);
    const others = harbor([{ path: "spec.key", from: { source: "other", key: "key" } }]);
    assert.equal(does({ sources, targets: [others], ...named }), false);
  });

  it("depends on ownership by a target", () => {
    const owned = { targets: [harbor()], ...rollout({ ownedByTargets: true }) };
    const status = { targets: [{ kind: "HarborCluster", name: "harbor", uid: "uid-of-harbor", reason: "Synced" }] };
    assert.equal(does(owned, { status }), true);
    assert.equal(does(owned), false);
    assert.equal(does(owned, { status, workload: { ...core, namespace: "elsewhere" } }), false);
  });

  it("depends on the namespace that the binding names, by default its own", () => {
    const elsewhere = { ...core, namespace: "edge" };
    const named = (more: object) => rollout({ targets: [{ kind: "Deployment", name: "core", ...more }] });
    assert.equal(does(named({}), { workload: elsewhere }), false);
    assert.equal(does(named({ namespace: "edge" }), { workload: elsewhere }), true);
    assert.equal(does(named({ namespace: "edge" })), false);
  });

  it("depends on consumersBy, for workloads that are found by references", () => {
    const by = (consumersBy: string[], workload = core) =>
      does(rollout({ consumersOf: ["bucket"], consumersBy }), { workload });
    assert.equal(by(["Volume", "Env"]), true);
    assert.equal(by(["Volume", "EnvFrom"]), false);
    assert.equal(by(["CSI"], { ...core, references: [{ by: "volume" }, { by: "csi" }] }), true);
    const named = rollout({ consumersBy: ["Volume"], targets: [{ kind: "Deployment", name: "core" }] });
    assert.equal(does(named), true);
  });

  it("is false for a named workload if only a field after the rollout uses the source", () => {
    const named = rollout({ targets: [{ kind: "Deployment", name: "core" }] });
    const sources = [{ secret: { name: "bucket" } }, { secret: { name: "other" } }];
    const others = harbor([{ path: "spec.key", from: { source: "other", key: "key" } }]);
    const after = { ...harbor(), when: "AfterRollout" };
    assert.equal(does({ sources, targets: [others, after], ...named }), false);
    assert.equal(does({ sources, targets: [after], ...named }), true);
  });

  describe("that reads a copy", () => {
    const copy = { kind: "Secret", namespace: "team-a", name: "login" } as const;
    const workload: Referrer = { ...core, namespace: "team-a", object: copy };
    const target = {
      apiVersion: "v1",
      kind: "Secret",
      name: "login",
      namespaceSelector: { names: ["team-*"] },
      fields: [
        { path: "data.key", from: { source: "bucket", key: "key" } },
        { path: "data.host", from: { source: "other", key: "host" } },
      ],
    };
    const sources = [{ secret: { name: "bucket" } }, { secret: { name: "other" } }];
    const record = { apiVersion: "v1", kind: "Secret", namespace: "team-a", name: "login", selected: true };
    const restarts = async (
      traced: Referrer["object"],
      more: object,
      reads = workload,
      targets: object[] = [target],
    ) => {
      const binding = bindingOf({ sources, targets, ...rollout(more) }, { targets: [record] });
      return restarterOf(binding, traced, await copiesOf([binding]), read)(reads);
    };
    const consumers = { consumersOfTargets: true };

    it("depends on consumersOfTargets, for the source and for the copy", async () => {
      assert.equal(await restarts(bucket, consumers), true);
      assert.equal(await restarts(copy, consumers), true);
      assert.equal(await restarts(copy, { consumersOf: ["bucket"] }), false);
      assert.equal(await restarts(copy, { ...consumers, kinds: ["DaemonSet"] }), false);
      assert.equal(await restarts(copy, { ...consumers, consumersBy: ["Volume"] }), false);
    });

    it("is false for keys that are not from the source, or that the binding does not write", async () => {
      const host: Referrer = { ...workload, references: [{ by: "env", keys: ["host"] }] };
      assert.equal(await restarts(bucket, consumers, host), false);
      assert.equal(await restarts(copy, consumers, host), true);
      const theirs: Referrer = { ...workload, references: [{ by: "env", keys: ["theirs"] }] };
      assert.equal(await restarts(copy, consumers, theirs), false);
      const both: Referrer = { ...workload, references: [{ by: "env", keys: ["theirs"] }, { by: "volume" }] };
      assert.equal(await restarts(copy, consumers, both), true);
      assert.equal(await restarts(copy, { ...consumers, consumersBy: ["Env"] }, both), false);
    });

    it("depends on the name", async () => {
      const named = { targets: [{ kind: "Deployment", name: "core", namespace: "team-a" }] };
      assert.equal(await restarts(copy, named), true);
    });

    it("is false for a copy that is written after the rollout", async () => {
      const after = [{ ...target, when: "AfterRollout" }];
      assert.equal(await restarts(bucket, consumers, workload, after), false);
      assert.equal(await restarts(copy, consumers, workload, after), false);
    });
  });

  it("is true if one of its steps restarts the workload", () => {
    const steps = [
      { name: "one", kinds: ["DaemonSet"], consumersOf: ["bucket"] },
      { name: "two", kinds: KINDS, consumersOf: ["bucket"] },
    ];
    assert.equal(does({ rollout: { steps } }), true);
    assert.equal(does({ rollout: { steps: steps.slice(0, 1) } }), false);
  });
});
