/**
 * The account of a binding that is not composed. No author can use the reserved account, not even for a deleted
 * binding.
 */
import assert from "node:assert/strict";
import { Installation } from "../../../src/api/installation.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { CONTROLLER } from "../../../src/kube/identity.ts";
import { actorOf } from "../../../src/targets/actor.ts";
import { Rejections } from "../../../src/targets/rejections.ts";
import { type ReleaseDependencies, releaseDeletedBinding } from "../../../src/targets/release.ts";
import { dependenciesOf } from "../fakes.ts";
import { bindingOf } from "../objects.ts";

const installation = new Installation({ ownNamespace: "inlay-system" });
const binding = (namespace: string, serviceAccountName: string) =>
  bindingOf({ metadata: { namespace, name: "b" }, spec: { serviceAccountName } });

describe("the account of a binding that is not composed", () => {
  for (const [namespace, name] of [
    ["shop", "inlay"],
    ["shop", "inlay-reloader"],
    ["inlay-system", "inlay"],
  ] as const)
    it(`is ${name} of ${namespace}, if the binding names it there`, () => {
      const actor = actorOf(binding(namespace, name), installation);
      assert.ok(!(actor instanceof Problem));
      assert.equal(actor.as.identity, `system:serviceaccount:${namespace}:${name}`);
      assert.deepEqual([actor.account.namespace, actor.account.name], [namespace, name]);
    });

  it("is not the reserved account for annotations, in its namespace", () => {
    const refused = actorOf(binding("inlay-system", "inlay-reloader"), installation);
    assert.ok(refused instanceof Problem);
    assert.equal(refused.reason, "ImpersonationForbidden");
    assert.match(refused.message, /set serviceAccountName/);
  });

  it("is not the reserved account for the release of a deleted binding either", async () => {
    const [asked, notes]: [string[], string[]] = [[], []];
    const client = {
      get: async (identity: string) => {
        asked.push(identity);
        return { metadata: {} };
      },
    };
    const events = { record: (_: unknown, { note }: { note: string }) => notes.push(note) };
    const deps = dependenciesOf<ReleaseDependencies>({
      installation,
      kindDeletions: { isOngoing: async () => false },
      client,
      events,
      rejections: new Rejections(),
      log: { warn: () => undefined },
    });
    const record = {
      apiVersion: "v1",
      kind: "ConfigMap",
      namespace: "shop",
      name: "c",
      uid: "2",
      reason: "Synced",
      paths: ["data.token"],
    };
    await releaseDeletedBinding(deps, binding("inlay-system", "inlay-reloader"), [record], 0);
    assert.deepEqual([...new Set(asked)], [CONTROLLER]);
    assert.match(notes.join(), /reserved for the annotations of Reloader/);
  });
});
