/** Which workloads wait for a target that does not have the new values yet. */
import assert from "node:assert/strict";
import type { Target } from "../../../../src/api/binding.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { SECRETS } from "../../../../src/apimachinery/resources.ts";
import { AccessDenied } from "../../../../src/kube/access-error.ts";
import { unsyncedTargets } from "../../../../src/rollout/decide/wait-for-targets.ts";
import { bindingOf, targetOf } from "../../objects.ts";

const problem = new Problem("Forbidden", "it may not patch it");
const BINDING = bindingOf();
const NAMED = targetOf();
const SELECTED = { ...NAMED, namespaceSelector: { names: ["*"] } };
const one = (namespace: string, target: Target = NAMED) => ({ target, namespace, problem });

describe("a target without the new values", () => {
  it("holds back all workloads if it is named, or in the namespace of the binding", () => {
    for (const each of [one("other"), one("registry", SELECTED), { target: SELECTED, problem }])
      assert.equal(unsyncedTargets(BINDING, undefined, [each]).everywhere?.reason, "TargetsNotSynced");
    assert.equal(
      unsyncedTargets(BINDING, problem, []).everywhere?.message,
      "not every target holds the new values yet; see the condition Ready",
    );
  });

  it("leaves the commands for a missing permission to the conditions, which have all of them", () => {
    const access = { identity: "system:serviceaccount:registry:inlay", ref: { resource: SECRETS }, verbs: ["get"] };
    const denied = new AccessDenied(access, "it may not get it", "kubectl create role");
    const tried = [
      { target: NAMED, problem: denied },
      { target: SELECTED, namespace: "other", problem: denied },
    ];
    const { namespaces } = unsyncedTargets(BINDING, undefined, tried);
    assert.match(
      namespaces.get("other") ?? "",
      /it may not get it; the conditions of the binding say how to allow it$/,
    );
  });

  it("holds back the workloads of its namespace if it is one of many", () => {
    const { everywhere, namespaces } = unsyncedTargets(BINDING, undefined, [
      one("other", SELECTED),
      { target: SELECTED, namespace: "third", problem },
      { target: SELECTED, namespace: "fine" },
    ]);
    assert.equal(everywhere, undefined);
    assert.deepEqual([...namespaces.keys()], ["other", "third"]);
  });
});
