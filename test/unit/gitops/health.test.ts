/**
 * Judges statuses by the Lua scripts for Argo CD, by kstatus, and by the health checks for Flux: for each kind and reason a status that the
 * controller's own functions compute, and those that the controller wrote during integration tests.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { argocdPatch, luaOf, PATCH } from "../../../deploy/argocd/generate.ts";
import type { Condition } from "../../../src/api/binding.ts";
import { catalogue, Problem, type Reason } from "../../../src/apimachinery/problem.ts";
import { type ConditionReason, STATE_REASONS } from "../../../src/apimachinery/reasons.ts";
import * as ofBinding from "../../../src/controllers/binding/conditions.ts";
import * as ofComposition from "../../../src/controllers/composition/composition-status.ts";
import * as ofConnection from "../../../src/controllers/vault/controller.ts";
import { evaluate, kstatusOf, runLua, useTools } from "../../gitops/tools.ts";

interface Recorded {
  /** Whether a minute has passed without progress. */
  isLate?: boolean;
  kind: string;
  metadata: { name: string; generation: number; deletionTimestamp?: string };
  spec: { suspend?: boolean };
  status: { observedGeneration?: number; conditions?: Condition[] };
}

const recorded: Recorded[] = JSON.parse(readFileSync(join(import.meta.dirname, "statuses.json"), "utf8"));
const NOW = new Date("2026-01-02T03:04:05Z");
const LATER = new Date("2026-01-02T03:05:05Z");
const PROBLEMS = Object.keys(catalogue) as Reason[];

/** The health of docs/gitops.md for each reason, beside those that are Degraded after a minute. */
const AT_ONCE = [
  "BindingsStalled",
  "ForbiddenAddress",
  "ForbiddenKind",
  "ForbiddenNamespace",
  "ForbiddenPath",
  "Immutable",
  "InvalidBinding",
  "InvalidComposition",
  "InvalidPath",
  "InvalidTemplate",
  "InvalidValue",
  "NotAcknowledged",
  "OutOfScope",
  "RestartReverted",
  "RolloutFailed",
  "TypeMismatch",
  "UnknownField",
  "VersionDropsFields",
];
const NEVER = [
  ...STATE_REASONS.filter((reason) => !AT_ONCE.includes(reason) && reason !== "PolicyMissing"),
  "ConversionFailed",
  "RolloutPending",
  "Unavailable",
  "Unreachable",
  "VaultSealed",
  "VaultThrottled",
  "VaultUnavailable",
  "WebhookFailed",
];

/** An object of the kind, with the first status that `statusOf` computes for it, and with the one of a minute later. */
function withStatus<T extends object>(kind: string, statusOf: (object: T, now: Date) => object): Recorded[] {
  const metadata = { name: "it", namespace: "registry", uid: "1", resourceVersion: "1", generation: 2 };
  const object = { apiVersion: "inlay.dev/v1alpha1", kind, metadata, spec: { targets: [], sources: [] } };
  const first = { ...object, status: statusOf(object as unknown as T, NOW) };
  const later = { ...object, status: statusOf(first as unknown as T, LATER), isLate: true };
  return [first, later] as unknown as Recorded[];
}

type Binding = Parameters<typeof ofBinding.heldStatus>[0];
type Composition = Parameters<typeof ofComposition.heldStatus>[0];
type Connection = Parameters<typeof ofConnection.statusOf>[0];

const rolloutIn = (reason: ConditionReason) => {
  const isDone = reason === "RolledOut";
  return {
    status: undefined,
    verdict: { ready: isDone ? "True" : "False", reason, message: "the workloads" },
  } as const;
};

/** Each reason where the controller reports it: problems of all kinds, and the states of bindings, rollouts, claims and connections. */
const computed: Recorded[] = [
  ...PROBLEMS.flatMap((reason) => {
    const problem = new Problem(reason, "what to do");
    return [
      ...withStatus<Binding>("SecretBinding", (binding, now) =>
        ofBinding.heldStatus(binding, ofBinding.refused(problem), now),
      ),
      ...withStatus<Binding>("SecretBinding", (binding, now) => {
        const target = { record: { apiVersion: "v1", kind: "ConfigMap", name: "app", reason: "" }, problem };
        return ofBinding.statusOf(binding, [target], [], now);
      }),
      ...withStatus<Composition>("BindingComposition", (composition, now) =>
        ofComposition.heldStatus(composition, ofComposition.notAccepted(problem), now),
      ),
      ...withStatus<Connection>("VaultConnection", (connection, now) =>
        ofConnection.statusOf(connection, { problem }, now),
      ),
    ];
  }),
  ...[...PROBLEMS, ...STATE_REASONS].flatMap((reason) =>
    withStatus<Binding>("SecretBinding", (binding, now) =>
      ofBinding.statusOf(binding, [], [], now, undefined, rolloutIn(reason)),
    ),
  ),
  ...withStatus<Binding>("SecretBinding", (binding, now) => ofBinding.heldStatus(binding, ofBinding.SUSPENDED, now)),
  ...withStatus<Binding>("SecretBinding", (binding, now) =>
    ofBinding.heldStatus(binding, ofBinding.SUSPENDED, now, rolloutIn("RolloutFailed")),
  ),
  ...([0, 1] as const).flatMap((waiting) =>
    ([0, 1, 2] as const).flatMap((ready) =>
      withStatus<Composition>("BindingComposition", (composition, now) => {
        const state = {
          records: new Map(),
          leftovers: new Map(),
          pending: new Set(waiting ? ["a/b"] : []),
          isListed: true,
          refresh: undefined,
        };
        return ofComposition.activeStatus(
          composition,
          state,
          { bindings: 2, ready, stalled: ready % 2 },
          undefined,
          now,
        );
      }),
    ),
  ),
  ...[0, 1].flatMap((claims) =>
    withStatus<Composition>("BindingComposition", (composition, now) => {
      const state = { records: new Map(), leftovers: new Map(), pending: new Set<string>(), isListed: true };
      const refusal = new Problem("Forbidden", "may not list");
      const seen = { ...composition, status: { ...composition.status, claims } };
      const counts = { bindings: 0, ready: 0, stalled: 0 };
      return ofComposition.activeStatus(seen, { ...state, refresh: undefined }, counts, refusal, now);
    }),
  ),
  ...withStatus<Composition>("BindingComposition", (composition, now) =>
    ofComposition.heldStatus(composition, ofComposition.ACCEPTED, now, ofComposition.SUSPENDED),
  ),
  ...withStatus<Connection>("VaultConnection", (connection, now) => ofConnection.statusOf(connection, {}, now)),
];
const all = [...computed, ...recorded];
const script = luaOf("health.lua");
const healthOf = async (object: object): Promise<unknown> => (await runLua(script, object))["status"];

const conditionIn = ({ status }: Recorded, type: string) => status.conditions?.find((each) => each.type === type);

/** The health by the documented rules, independent of the scripts and of the conditions Reconciling and Stalled. */
function expected({ metadata, status: { conditions = [] }, isLate = false }: Recorded): string {
  if (metadata.deletionTimestamp !== undefined) return "Progressing";
  const open = conditions.filter(({ type, status }) => /^(Accepted|Ready|RolledOut)$/.test(type) && status !== "True");
  if (open.some(({ type, reason }) => type === "Ready" && reason === "Suspended")) return "Suspended";
  if (open.some(({ reason }) => AT_ONCE.includes(reason) || (isLate && !NEVER.includes(reason)))) return "Degraded";
  if (open.some(({ reason }) => reason !== "Suspended")) return "Progressing";
  return open.length > 0 ? "Suspended" : "Healthy";
}

const KSTATUS: Readonly<Record<string, string>> = { Healthy: "Current", Degraded: "Failed", Progressing: "InProgress" };

const [, kustomization] = parseAllDocuments(
  readFileSync(join(import.meta.dirname, "..", "..", "..", "deploy", "flux", "kustomization.yaml"), "utf8"),
).map((document) => document.toJS());
const [checks] = kustomization.spec.healthCheckExprs;

describe("the health of an object in Argo CD and Flux", () => {
  before(useTools);

  const textOf = ({ kind, metadata, status: { conditions = [] }, isLate = false }: Recorded) => {
    const said = conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`).join(", ");
    return `a ${kind} with ${said}${isLate ? " after a minute" : ""}${metadata.deletionTimestamp === undefined ? "" : ", being deleted"}`;
  };
  for (const each of all)
    it(`is as documented for ${textOf(each)}`, async () => {
      const health = expected(each);
      assert.equal(await healthOf(each), health);
      const isDeleted = each.metadata.deletionTimestamp !== undefined;
      const isHeld = conditionIn(each, "Ready")?.reason === "Suspended";
      // kstatus has no state for a suspended object.
      const flux = isDeleted ? "Terminating" : isHeld ? "InProgress" : (KSTATUS[health] ?? "Current");
      assert.equal(await kstatusOf(each), flux);
    });

  it("has a case for every reason, and at least one for each health of each kind", () => {
    const reasons = new Set(all.flatMap(({ status }) => status.conditions ?? []).map(({ reason }) => reason));
    const missing = [...PROBLEMS, ...STATE_REASONS].filter((reason) => !reasons.has(reason));
    assert.deepEqual(missing, []);
    const found = new Set(all.map((each) => `${each.kind} ${expected(each)}`));
    for (const kind of ["SecretBinding", "BindingComposition", "VaultConnection"])
      for (const health of ["Healthy", "Progressing", "Degraded"])
        assert.ok(found.has(`${kind} ${health}`), `${kind} ${health}`);
  });

  it("is Progressing without a status, with an older one, and while it is deleted; a SecretGrant is Healthy", async () => {
    const metadata = { name: "it", generation: 2 };
    const ready = { type: "Ready", status: "True", reason: "Synced", message: "" };
    for (const status of [undefined, { observedGeneration: -1 }, { observedGeneration: 1, conditions: [ready] }])
      assert.equal(await healthOf({ kind: "SecretBinding", metadata, spec: {}, status }), "Progressing");
    const deleted = { name: "it", generation: 2, deletionTimestamp: "2026-01-02T03:04:05Z" };
    const status = { observedGeneration: 2, conditions: [ready] };
    assert.equal(await healthOf({ kind: "SecretBinding", metadata: deleted, spec: {}, status }), "Progressing");
    assert.equal(await healthOf({ kind: "SecretGrant", metadata, spec: {} }), "Healthy");
  });

  it("says in Argo CD what a binding waits for, with its target and the command", async () => {
    const metadata = { name: "it", generation: 2 };
    const conditions = [
      { type: "Ready", status: "False", reason: "ServiceAccountNotFound", message: "a sentence" },
      { type: "Reconciling", status: "True", reason: "ServiceAccountNotFound", message: "see the condition Ready" },
    ];
    const target = { apiVersion: "v1", kind: "ConfigMap", namespace: "web", name: "app" };
    const problem = {
      target,
      reason: "ServiceAccountNotFound",
      path: "data.a",
      message: "no account",
      fix: "create it",
    };
    const judge = async (kind: string, problems: object[]) => {
      const status = { observedGeneration: 2, conditions, problems };
      return (await runLua(script, { kind, metadata, spec: {}, status }))["message"];
    };
    assert.equal(
      await judge("SecretBinding", [{ ...problem, command: "kubectl a" }]),
      "ServiceAccountNotFound: ConfigMap web/app: data.a: no account; create it with: kubectl a",
    );
    for (const kind of ["SecretBinding", "BindingComposition"])
      assert.equal(await judge(kind, []), "ServiceAccountNotFound: a sentence");
  });

  it("is current in deploy/flux when the values are there or the binding is suspended, and failed for a mistake", async () => {
    for (const each of all.filter(({ kind }) => kind === "SecretBinding")) {
      const ready = conditionIn(each, "Ready");
      const isCurrent = ready?.status === "True" || ready?.reason === "Suspended";
      assert.equal(await evaluate(checks.current, each), isCurrent, textOf(each));
      assert.equal(await evaluate(checks.failed, each), conditionIn(each, "Stalled") !== undefined, textOf(each));
    }
  });
});

describe("the actions of Argo CD", () => {
  before(useTools);

  const actionsOf = async (kind: string, suspend?: boolean) => {
    const actions = await runLua(luaOf("actions/discovery.lua"), { kind, spec: { suspend } });
    const enabled = Object.entries(actions).filter(([, each]) => (each as { disabled: boolean }).disabled === false);
    return enabled.map(([name]) => name).sort();
  };

  it("are those that change something", async () => {
    assert.deepEqual(await actionsOf("SecretBinding"), ["suspend", "sync-now"]);
    assert.deepEqual(await actionsOf("SecretBinding", true), ["resume"]);
    assert.deepEqual(await actionsOf("BindingComposition", false), ["suspend", "sync-now"]);
    assert.deepEqual(await actionsOf("VaultConnection"), ["sync-now"]);
  });

  it("are all in the patch of argocd-cm, which is up to date", () => {
    assert.equal(readFileSync(PATCH, "utf8"), argocdPatch());
  });
});
