/** Which objects that bindings write are copies of a Secret, and which of its keys pods use through them. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../src/api/binding.ts";
import { consumedCopies, copiesOf, idOf, type Reference, workloadTrace } from "../../../src/explain/trace.ts";
import { bindingOf, KINDS } from "../bindings.ts";

const origin = { kind: "Secret", namespace: "registry", name: "bucket" } as const;
const sources = [{ name: "s3", secret: { name: "bucket" } }, { secret: { name: "other" } }];
const fields = [
  { path: "data.url", template: "{{s3.host}}:{{s3.port}}" },
  { path: "data.token", from: { source: "other", key: "token" } },
];
const target = { apiVersion: "v1", kind: "Secret", name: "app", namespaceSelector: { names: ["*"] }, fields };
const recordIn = (namespace: string, more: object = {}) => ({
  apiVersion: "v1",
  kind: "Secret",
  namespace,
  name: "app",
  selected: true,
  ...more,
});
const rollout = { consumersOfTargets: true, kinds: KINDS };
const binding = (spec: object, targets: object[] = [recordIn("a"), recordIn("b")]) =>
  bindingOf({ sources, targets: [target], rollout, ...spec }, { targets });
const consumed = async (...bindings: SecretBinding[]) => [...consumedCopies(await copiesOf(bindings), origin).keys()];

describe("the copies of a Secret", () => {
  it("are the Secrets and ConfigMaps that a binding wrote from it, in every namespace", async () => {
    assert.deepEqual(await consumed(binding({})), ["a/Secret/app", "b/Secret/app"]);
    const steps = {
      steps: [
        { name: "one", kinds: KINDS, targets: [] },
        { name: "two", ...rollout },
      ],
    };
    assert.deepEqual(await consumed(binding({ rollout: steps })), ["a/Secret/app", "b/Secret/app"]);
  });

  it("exclude targets of a binding that does not restart their consumers", async () => {
    assert.deepEqual(await consumed(binding({ rollout: { ...rollout, consumersOfTargets: false } })), []);
    assert.deepEqual(await consumed(binding({ rollout: undefined })), []);
  });

  it("exclude targets after the rollout, targets that the spec does not name, and targets without its values", async () => {
    assert.deepEqual(await consumed(binding({ targets: [{ ...target, when: "AfterRollout" }] })), []);
    assert.deepEqual(await consumed(binding({}, [recordIn("a", { name: "left" })])), []);
    assert.deepEqual(await consumed(binding({ targets: [{ ...target, fields: fields.slice(1) }] })), []);
    const configMap = { ...target, apiVersion: "example.com/v1", kind: "ConfigMap" };
    assert.deepEqual(await consumed(binding({ targets: [configMap] })), []);
  });

  const described = async (references: Reference[], ...bindings: SecretBinding[]) => {
    const object = { kind: "Secret", namespace: "a", name: "app" } as const;
    const core = { apiVersion: "apps/v1", kind: "Deployment", namespace: "a", name: "core", labels: {}, owners: [] };
    const copies = consumedCopies(await copiesOf(bindings), origin);
    assert.ok(copies.has(idOf(object)));
    return workloadTrace({ ...core, object, references }, origin, copies, []);
  };

  it("map the keys that pods name to the keys of the Secret", async () => {
    const trace = await described(
      [
        { by: "volume", keys: ["url"] },
        { by: "env", keys: ["token", "url"] },
      ],
      binding({}),
    );
    assert.deepEqual(trace, {
      apiVersion: "apps/v1",
      kind: "Deployment",
      namespace: "a",
      name: "core",
      copy: { kind: "Secret", name: "app" },
      references: ["env", "volume"],
      keys: ["host", "port"],
      restarts: [],
    });
    assert.equal(await described([{ by: "env", keys: ["token"] }], binding({})), undefined);
  });

  it("combine all bindings that write into one object, and map copies of all data to all keys", async () => {
    const user = { ...target, fields: [{ path: "data.user", from: { source: "s3", key: "user" } }] };
    const two = await described([{ by: "envFrom" }], binding({}), binding({ targets: [user] }));
    assert.deepEqual(two?.keys, ["host", "port", "user"]);
    const all = binding({ targets: [{ ...target, fields: [{ path: "data", from: { source: "s3" } }] }] });
    assert.equal((await described([{ by: "envFrom" }], all))?.keys, undefined);
    assert.deepEqual((await described([{ by: "env", keys: ["x"] }], all))?.keys, ["x"]);
  });
});
