/** The first advice that explain gives for the observations of a binding. */
import assert from "node:assert/strict";
import { adviceFor } from "../../../src/explain/explain.ts";
import type { Explanation } from "../../../src/explain/explanation.ts";
import { BINDING } from "./explained.ts";

type Facts = Omit<Explanation, "advice">;

const condition = (type: string, status: "True" | "False", reason: string, message: string) => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: "2026-01-01T00:00:00Z",
});

/** A binding without problems, except for the given facts. */
function facts({
  binding,
  ...more
}: Omit<Partial<Facts>, "binding"> & { binding?: Partial<Facts["binding"]> } = {}): Facts {
  return {
    binding: { ...BINDING, ...binding },
    account: { name: "ServiceAccount registry/inlay", state: "Found" },
    sources: [],
    targets: [],
    conditions: [condition("Ready", "True", "Synced", "the target holds the current values")],
    events: [],
    ...more,
  };
}

describe("the advice of explain", () => {
  it("is Synced when there is no problem", () => {
    assert.deepEqual(adviceFor(facts()), { reason: "Synced", message: "nothing, the binding is in sync" });
  });

  const HARBOR = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", namespace: "registry", name: "harbor" };

  it("is the problem in the status that has the reason of the condition, with its command on its own", () => {
    const conditions = [condition("Ready", "False", "ServiceAccountNotFound", "a sentence (and 2 more)")];
    const [reason, command] = ["ServiceAccountNotFound", "kubectl create serviceaccount inlay -n registry"];
    const message = "there is no ServiceAccount registry/inlay";
    const problems = [
      { reason: "Conflict", message: "argocd owns it" },
      { target: HARBOR, reason, path: "spec.env", message, fix: "create it", command },
    ];
    assert.deepEqual(adviceFor(facts({ conditions, problems })), {
      reason,
      message: `HarborCluster registry/harbor: spec.env: ${message}; create it with:`,
      command,
    });
    assert.deepEqual(adviceFor(facts({ conditions })), { reason, message: "a sentence (and 2 more)" });
  });

  const hostile = "x with: kubectl delete ns prod; print the commands that allow it with: kubectl delete ns prod; echo";

  it("has all commands for missing permissions, although the problem has room for few, whatever names are in it", () => {
    const conditions = [condition("Ready", "False", "Forbidden", hostile)];
    const print = "kubectl get secretbinding harbor-s3 -n registry -o jsonpath='{.status.missingPermissions}'";
    const problem = {
      target: { ...HARBOR, name: hostile },
      reason: "Forbidden",
      message: "may not get secrets/bucket",
    };
    const problems = [{ ...problem, fix: "print the commands that allow it", command: print }];
    const missingPermissions = ["kubectl a; kubectl b", `kubectl create role r --resource-name='${hostile}'`];
    const advice = adviceFor(facts({ conditions, problems, missingPermissions }));
    assert.equal(advice.command, missingPermissions.join("; "));
    assert.match(advice.message, /may not get secrets\/bucket; allow what the controller found missing with:$/);
  });

  it("has the commands of all denied requests, each once, if the controller has none for all of them", () => {
    const conditions = [condition("Ready", "False", "Forbidden", "a sentence (and 3 more)")];
    const denied = (message: string, command: string) => ({ reason: "Forbidden", message, fix: "allow it", command });
    const print = denied(
      "c",
      "kubectl get secretbinding harbor-s3 -n registry -o jsonpath='{.status.missingPermissions}'",
    );
    const problems = [denied("a", "kubectl create namespace a"), denied("b", "kubectl b"), print];
    const commandOf = (more: Partial<Facts>) => adviceFor(facts({ conditions, problems, ...more })).command;
    assert.equal(commandOf({}), "kubectl create namespace a; kubectl b");
    assert.equal(commandOf({ missingPermissions: ["kubectl b"] }), "kubectl create namespace a; kubectl b");
  });

  it("has no command that a name or path in a sentence imitates", () => {
    const conditions = [condition("Ready", "False", "Rejected", `there is no ${hostile}; create it`)];
    for (const problems of [undefined, [{ reason: "Rejected", message: hostile }]])
      assert.equal(adviceFor(facts({ conditions, ...(problems && { problems }) })).command, undefined);
  });

  it("puts Ready before RolledOut", () => {
    const rolled = condition("RolledOut", "False", "Halted", "Deployment registry/core did not roll out");
    const ready = condition("Ready", "False", "KeyNotFound", "no key");
    assert.equal(adviceFor(facts({ conditions: [rolled, ready] })).reason, "KeyNotFound");
    assert.equal(adviceFor(facts({ conditions: [...facts().conditions, rolled] })).reason, "Halted");
  });

  it("is the rollout's for a target that waits for the rollout, unless the rollout has ended", () => {
    const waits = condition("Ready", "False", "RolloutPending", "it is written when every workload has rolled out");
    const missing = condition("RolledOut", "False", "WorkloadNotFound", "create it, or correct the name");
    const advice = { reason: "WorkloadNotFound", message: "create it, or correct the name" };
    assert.deepEqual(adviceFor(facts({ conditions: [waits, missing] })), advice);
    const ended = condition("RolledOut", "True", "RolledOut", "all workloads have the values");
    assert.equal(adviceFor(facts({ conditions: [waits, ended] })).reason, "RolloutPending");
  });

  it("shows how to end a suspension", () => {
    const { reason, command } = adviceFor(facts({ binding: { suspended: true } }));
    assert.equal(reason, "Suspended");
    assert.equal(
      command,
      `kubectl patch secretbinding harbor-s3 -n registry --type merge -p '{"spec":{"suspend":false}}'`,
    );
  });

  const source = { source: "bucket", kind: "Secret", namespace: "registry", name: "bucket", optional: false };
  const store = { product: "Vault", reads: "data kv/registry/s3" };
  const sealed = { status: "False" as const, reason: "VaultSealed", message: "it is sealed" };
  const target = { apiVersion: "v1", kind: "ConfigMap", selects: false, creates: false, fields: [], more: 0 };
  const object = { namespace: "registry", name: "x", fields: [] };
  const unseen: Record<string, [Partial<Facts>, string]> = {
    "that no controller looked": [{}, "NotObserved"],
    "the account": [
      { account: { name: "ServiceAccount registry/inlay", state: "NotFound" } },
      "ServiceAccountNotFound",
    ],
    "a source": [{ sources: [{ ...source, state: "NotFound", uses: [] }] }, "SourceNotFound"],
    "no source that is optional": [
      { sources: [{ ...source, optional: true, state: "NotFound", uses: [] }] },
      "NotObserved",
    ],
    "a key": [{ sources: [{ ...source, state: "Found", uses: [{ key: "a", present: false }] }] }, "KeyNotFound"],
    "no key that can't be seen": [
      { sources: [{ ...source, state: "Unreadable", uses: [{ key: "a" }] }] },
      "NotObserved",
    ],
    "a grant": [
      { sources: [{ ...source, state: "Found", uses: [], grants: { state: "NotFound", names: [] } }] },
      "NotGranted",
    ],
    "a VaultConnection that is not there, of an optional source too": [
      { sources: [{ ...source, optional: true, state: "NotFound", uses: [], store }] },
      "ConnectionNotFound",
    ],
    "a VaultConnection that is not ready": [
      { sources: [{ ...source, state: "Found", uses: [], store: { ...store, ready: sealed } }] },
      "VaultSealed",
    ],
    "no VaultConnection that is ready, or was not looked at": [
      { sources: [{ ...source, state: "Found", uses: [], store: { ...store, ready: { ...sealed, status: "True" } } }] },
      "NotObserved",
    ],
    "a kind": [{ targets: [{ ...target, objects: [], message: "the cluster serves no X" }] }, "KindNotFound"],
    "a target": [{ targets: [{ ...target, objects: [{ ...object, state: "NotFound" }] }] }, "TargetNotFound"],
    "no target that is to be made": [
      { targets: [{ ...target, creates: true, objects: [{ ...object, state: "NotFound" }] }] },
      "NotObserved",
    ],
  };
  it("shows where the controller should run, if that is known, to a binding that it has not reconciled", () => {
    const command = (namespace?: string) => adviceFor(facts({ binding: { observedGeneration: 1 } }), namespace).command;
    assert.equal(command("my-inlay"), "kubectl get pods -n my-inlay -l app.kubernetes.io/name=inlay");
    assert.equal(command(), "kubectl get pods -A -l app.kubernetes.io/name=inlay");
  });

  for (const [what, [seen, reason]] of Object.entries(unseen)) {
    it(`uses the observations for a binding that the controller has not reconciled: ${what}`, () => {
      assert.equal(adviceFor(facts({ binding: { observedGeneration: 1 }, ...seen })).reason, reason);
    });
  }
});
