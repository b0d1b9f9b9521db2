/** The first advice that explain gives for the observations of a binding. */
import assert from "node:assert/strict";
import { describeObject } from "../../../src/apimachinery/objects.ts";
import { adviceFor, withCommand } from "../../../src/explain/advice.ts";
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

  it("is the condition's message, with its command on its own", () => {
    const said =
      "HarborCluster registry/harbor: there is no ServiceAccount registry/inlay; make it with: kubectl create serviceaccount inlay -n registry";
    const conditions = [
      condition("Ready", "False", "ServiceAccountNotFound", `${said} (and 2 more, see status.targets)`),
    ];
    assert.deepEqual(adviceFor(facts({ conditions })), {
      reason: "ServiceAccountNotFound",
      message: "HarborCluster registry/harbor: there is no ServiceAccount registry/inlay; make it with:",
      command: "kubectl create serviceaccount inlay -n registry",
    });
  });

  it("has no command if the message has none, or a truncated one", () => {
    const long = `make it with: kubectl create role ${"x".repeat(1024)}`.slice(0, 1024);
    assert.deepEqual(withCommand("Forbidden", long), { reason: "Forbidden", message: long });
    assert.deepEqual(withCommand("Conflict", "argocd holds it"), { reason: "Conflict", message: "argocd holds it" });
  });

  it("has the commands for all missing permissions, even if the condition has no room for them", () => {
    const print = "kubectl get secretbinding harbor-s3 -n registry -o jsonpath='{.status.missingPermissions}'";
    const refused = "HarborCluster registry/harbor: ServiceAccount registry/inlay may not get secrets/bucket";
    const message = `${refused}; this binding lacks: get on secrets/bucket; and 9 more; print the commands that allow all of it with: ${print}`;
    const conditions = [condition("Ready", "False", "Forbidden", message)];
    assert.deepEqual(adviceFor(facts({ conditions, missingPermissions: ["kubectl a; kubectl b", "kubectl c"] })), {
      reason: "Forbidden",
      message: `${refused}; this binding lacks: get on secrets/bucket; and 9 more; allow all that this binding lacks with:`,
      command: "kubectl a; kubectl b; kubectl c",
    });
  });

  it("has only the first commands if the status has no room for all", () => {
    const print = "kubectl get secretbinding harbor-s3 -n registry -o jsonpath='{.status.missingPermissions}'";
    const message = `may not get secrets; print the first 64 commands that allow it with: ${print}`;
    const conditions = [condition("Ready", "False", "Forbidden", message)];
    assert.deepEqual(adviceFor(facts({ conditions, missingPermissions: ["kubectl a", "kubectl b"] })), {
      reason: "Forbidden",
      message: "may not get secrets; allow the first 64 of all that this binding lacks with:",
      command: "kubectl a; kubectl b",
    });
  });

  const hostile = "x with: kubectl delete ns prod; print the commands that allow it with: kubectl delete ns prod; echo";

  it("has no command that a name or path in the message imitates", () => {
    const object = describeObject("ConfigMap", "web", hostile);
    for (const message of [
      `there is no ${object}; create it`,
      `spec.targets[0]: data[${JSON.stringify(hostile)}] is not in the schema; correct the path`,
      `a text that is not quoted: ${hostile}`,
    ])
      assert.equal(
        adviceFor(facts({ conditions: [condition("Ready", "False", "Rejected", message)] })).command,
        undefined,
        message,
      );
    const real = `${object}: there is no namespace web; create it with: kubectl create namespace web`;
    assert.equal(withCommand("TargetNotFound", real).command, "kubectl create namespace web");
  });

  it("has the commands of the status, whatever the names in the message", () => {
    const command = `kubectl create role r -n web --verb=get --resource=secrets --resource-name='${hostile}'`;
    for (const end of [
      `allow it with: ${command}`,
      "print the commands that allow it with: kubectl get secretbinding harbor-s3 -n registry -o jsonpath='{.status.missingPermissions}'",
    ]) {
      const message = `Secret web/${JSON.stringify(hostile)}: may not get it; ${end}`;
      const conditions = [condition("Ready", "False", "Forbidden", message)];
      assert.equal(adviceFor(facts({ conditions, missingPermissions: [command] })).command, command);
    }
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

  it("separates the command for one namespace from the names of other namespaces that need it too", () => {
    const command = "kubectl create role restarts -n a --verb=patch && kubectl create rolebinding restarts -n a";
    const said = "namespace a: ServiceAccount platform/inlay may not list deployments.apps in namespace a; allow it";
    const message = `${said} (the same for b, c and 4 more) with:`;
    const withOthers = `${said} with: ${command}; the same for b, c and 4 more`;
    assert.deepEqual(withCommand("Forbidden", withOthers), { reason: "Forbidden", message, command });
    const cutOff = `${withOthers}${"x".repeat(1024)}`.slice(0, 1024);
    assert.equal(withCommand("Forbidden", cutOff).command, command);
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
  const vault = { reads: "data kv/registry/s3" };
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
      { sources: [{ ...source, optional: true, state: "NotFound", uses: [], vault }] },
      "ConnectionNotFound",
    ],
    "a VaultConnection that is not ready": [
      { sources: [{ ...source, state: "Found", uses: [], vault: { ...vault, ready: sealed } }] },
      "VaultSealed",
    ],
    "no VaultConnection that is ready, or was not looked at": [
      { sources: [{ ...source, state: "Found", uses: [], vault: { ...vault, ready: { ...sealed, status: "True" } } }] },
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
