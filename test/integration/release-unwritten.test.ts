/** Shows that a release removes only what Inlay wrote, and claims a removal only if the API server stores it. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { type Mutation, mutate } from "../controller/mutating.ts";
import { untilEvent } from "../controller/released.ts";
import { createNamespace, type TestNamespace, usualRules } from "../controller/test-namespace.ts";

const text = { type: "string" };
const gadget: Kind = {
  group: "unwritten.example.com",
  kind: "Gadget",
  plural: "gadgets",
  spec: {
    type: "object",
    properties: {
      forbidden: text,
      token: text,
      note: text,
      eps: {
        type: "array",
        maxItems: 5,
        "x-kubernetes-list-type": "atomic",
        items: { type: "object", properties: { name: text, tok: { ...text, maxLength: 100 } } },
      },
    },
    "x-kubernetes-validations": [
      { rule: "!has(self.eps) || !has(self.forbidden) || self.eps.all(e, !has(e.tok) || e.tok != self.forbidden)" },
    ],
  },
};
const A = "spec.eps[name=a].tok";
const B = "spec.eps[name=b].tok";
const USERS = {
  token: "mine",
  eps: [
    { name: "a", tok: "mine" },
    { name: "b", tok: "other" },
  ],
};

/** A Gadget `g` with values of its user, and a Secret `s`. */
async function newTeam(more: object = {}) {
  const team = await createNamespace({ rules: [...usualRules, mayWrite(gadget)] });
  const [key, other] = [secretText("key"), secretText("other")];
  await installKind(team.api, gadget);
  await createObject(team.api, gadget, "g", { ...USERS, ...more }, team.namespace);
  await createObject(team.api, gadget, "probe", { token: "probe", eps: [] }, team.namespace);
  await team.secret("s", { key, other });
  return { team, key, other };
}

const pathOf = (team: TestNamespace, name = "g") => objectPath(gadget, team.namespace, name);
const specOf = async (team: TestNamespace): Promise<AnyObject> => (await team.api.get(pathOf(team))).spec;
const forgetKey = (team: TestNamespace) => team.api.merge(`${team.path("v1", "secrets")}/s`, { data: { key: null } });
const stays = { name: "a", tok: "mine" };

const specFor = (paths: Record<string, string>, more: object = {}, source: object = {}) => ({
  sources: [{ secret: { name: "s" }, ...source }],
  targets: [
    {
      apiVersion: apiVersionOf(gadget),
      kind: gadget.kind,
      name: "g",
      onRelease: "Remove",
      fields: Object.entries(paths).map(([path, key]) => ({ path, from: { source: "s", key } })),
      ...more,
    },
  ],
});

const reasonsOf = async (team: TestNamespace) => (await team.events("b")).map(({ reason }) => reason);
const ownersOf = async (team: TestNamespace) =>
  (await team.api.get(pathOf(team))).metadata.managedFields.map(({ manager }: AnyObject) => manager);

/** Puts back what an update of the Gadget changes in `spec`, if the update meets the condition. */
async function putBack(team: TestNamespace, when: string, value: string, path = "/spec"): Promise<() => Promise<void>> {
  const policy: Mutation = {
    operations: ["UPDATE"],
    apiGroups: [gadget.group],
    resources: [gadget.plural],
    when: `object.metadata.name == "probe" ? has(object.spec.note) : (${when})`,
    patch: `object.metadata.name == "probe" ? [JSONPatch{op: "replace", path: "/spec/note", value: "seen"}] : [JSONPatch{op: "add", path: "${path}", value: ${value}}]`,
  };
  let probes = 0;
  return mutate(team, `${team.namespace}-back`, policy, async () => {
    const probed = await team.api.merge(pathOf(team, "probe"), { spec: { note: `probe-${++probes}` } });
    assert.equal(probed.spec.note, "seen");
  });
}

describe("a value of a user that a binding with onRelease: Remove could not replace", function () {
  this.timeout("2m");

  for (const [how, release] of [
    ["the binding is deleted", (team) => team.unbind("b")],
    ["its field is removed", (team) => team.rebind("b", specFor({ "spec.note": "other" }))],
    ["its key is missing and onMissing is Remove", forgetKey],
  ] as [string, (team: TestNamespace) => Promise<unknown>][])
    it(`stays in an atomic list after Rejected, when ${how}`, async () => {
      const { team, key } = await newTeam();
      await team.api.merge(pathOf(team), { spec: { forbidden: key } });
      await team.bind("b", specFor({ [A]: "key", "spec.note": "other" }, {}, { onMissing: "Remove", optional: true }));
      const { status } = await team.until("b", "Rejected");
      assert.deepEqual([status.targets[0].paths, status.targets[0].pendingPaths], [undefined, [A, "spec.note"]]);
      await release(team);
      if (how !== "the binding is deleted") await team.until("b", "Synced");
      assert.deepEqual((await specOf(team)).eps[0], stays);
      assert.ok(!(await reasonsOf(team)).includes("Removed"));
    });

  it("stays in an atomic list in which the binding wrote another value, and is reported", async () => {
    const { team, key } = await newTeam();
    await team.bind("b", specFor({ [B]: "other" }));
    await team.until("b", "Synced");
    await team.api.merge(pathOf(team), { spec: { forbidden: key } });
    await team.rebind("b", specFor({ [B]: "other", [A]: "key" }));
    await team.until("b", "Rejected");
    await team.unbind("b");
    assert.deepEqual((await specOf(team)).eps, [stays, { name: "b" }]);
    await untilEvent(team, "b", "Removed", /^removed spec\.eps\[name=b\]\.tok of/);
    await untilEvent(team, "b", "ReleaseBlocked", /^kept spec\.eps\[name=a\]\.tok of .*did not see/);
  });

  for (const [path, more] of [
    [A, {}],
    ["spec.token", { onConflict: "Force" }],
  ] as const)
    it(`stays at ${path} after its first write was Reverted, and has no owner of Inlay then`, async () => {
      const { team } = await newTeam();
      const remove = await putBack(team, "true", "oldObject.spec");
      await team.bind("b", specFor({ [path]: "key" }, more));
      const { status } = await team.until("b", "Reverted");
      assert.deepEqual([status.targets[0].paths, status.targets[0].revertedPaths], [undefined, [path]]);
      await remove();
      // Before the retry of the write, half a minute later.
      await team.unbind("b");
      const { token, eps } = await specOf(team);
      assert.deepEqual([token, eps[0]], ["mine", stays]);
      assert.deepEqual(
        (await ownersOf(team)).filter((name: string) => name.startsWith("inlay/")),
        [],
      );
      assert.ok(!(await reasonsOf(team)).includes("Removed"));
    });

  it("is the binding's after a retry has written it, and is removed then", async () => {
    const { team, key } = await newTeam();
    const remove = await putBack(team, "true", "oldObject.spec");
    await team.bind("b", specFor({ "spec.token": "key" }, { onConflict: "Force" }));
    await team.until("b", "Reverted");
    await remove();
    await team.secret("s", { key, other: secretText("again") });
    const { status } = await team.until("b", "Synced");
    assert.deepEqual([status.targets[0].paths, status.targets[0].revertedPaths], [["spec.token"], undefined]);
    await team.unbind("b");
    assert.equal((await specOf(team)).token, undefined);
  });

  it("is not the former value of the binding, which is removed although its rotation was Reverted", async () => {
    const { team } = await newTeam();
    await team.bind("b", specFor({ "spec.token": "key" }, { onConflict: "Force" }));
    await team.until("b", "Synced");
    const remove = await putBack(team, "true", "oldObject.spec");
    await team.secret("s", { key: secretText("rotated") });
    await team.until("b", "Reverted");
    await remove();
    await team.unbind("b");
    assert.equal((await specOf(team)).token, undefined);
  });
});

describe("a value whose removal a rule does not allow", function () {
  this.timeout("2m");
  const kept: [string, string, string, string][] = [
    ["spec.token", "has(oldObject.spec.token) && !has(object.spec.token)", "oldObject.spec.token", "/spec/token"],
    [A, "has(oldObject.spec.eps[0].tok) && !has(object.spec.eps[0].tok)", "oldObject.spec.eps", "/spec/eps"],
  ];

  for (const [path, when, value, at] of kept) {
    it(`is not claimed as removed at ${path}, and is removed with the field once the rule is gone`, async () => {
      const { team } = await newTeam();
      await team.bind("b", specFor({ [path]: "key", "spec.note": "other" }, { onConflict: "Force" }));
      await team.until("b", "Synced");
      const remove = await putBack(team, when, value, at);
      await team.rebind("b", specFor({ "spec.note": "other" }, { onConflict: "Force" }));
      const { status } = await team.until("b", "ReleaseBlocked");
      assert.match(status.targets[0].message, /accepted the removal of spec\..* and kept the value.*admission/);
      assert.ok(status.targets[0].paths.includes(path));
      await untilEvent(team, "b", "ReleaseBlocked", /accepted the removal and kept the value/);
      assert.ok(!(await reasonsOf(team)).includes("Removed"));
      await remove();
      await team.until("b", "Synced", 60_000);
      const { token, eps } = await specOf(team);
      assert.equal(path === A ? eps[0].tok : token, undefined);
    });
  }

  it("is removed with a missing key and with the binding once the rule is gone", async () => {
    const { team } = await newTeam();
    const [[path, when, value, at]] = kept as [(typeof kept)[number]];
    await team.bind("b", specFor({ [path]: "key" }, { onConflict: "Force" }, { onMissing: "Remove", optional: true }));
    await team.until("b", "Synced");
    const remove = await putBack(team, when, value, at);
    await forgetKey(team);
    await team.until("b", "ReleaseBlocked");
    await team.api.delete(team.bindingPath("b"));
    await remove();
    await eventually(async () => assert.equal((await specOf(team)).token, undefined), 60_000);
  });

  it("is reported with the policy that denied the removal", async () => {
    const { team } = await newTeam();
    await team.bind("b", specFor({ "spec.token": "key" }, { onConflict: "Force" }));
    await team.until("b", "Synced");
    const name = `${team.namespace}-keep`;
    const admission = "/apis/admissionregistration.k8s.io/v1";
    const rules = [{ apiGroups: [gadget.group], apiVersions: ["*"], resources: ["gadgets"], operations: ["UPDATE"] }];
    await team.api.create(`${admission}/validatingadmissionpolicies`, {
      metadata: { name },
      spec: { matchConstraints: { resourceRules: rules }, validations: [{ expression: "has(object.spec.token)" }] },
    });
    await team.api.create(`${admission}/validatingadmissionpolicybindings`, {
      metadata: { name },
      spec: {
        policyName: name,
        validationActions: ["Deny"],
        matchResources: { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": team.namespace } } },
      },
    });
    const probe = () => team.api.merge(pathOf(team, "probe"), { spec: { token: null } });
    await eventually(() => assert.rejects(probe(), { status: 422 }), 30_000);
    await team.unbind("b");
    const note = new RegExp(`^kept spec\\.token of .*: ValidatingAdmissionPolicy ${name} with binding ${name} denied `);
    await untilEvent(team, "b", "ReleaseBlocked", note);
  });
});
