/** The status of a binding, computed from the outcomes of its targets. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { SecretBinding, Status, TargetStatus } from "../../../../src/api/binding.ts";
import { catalogue, Problem, type Reason } from "../../../../src/apimachinery/problem.ts";
import {
  heldStatus,
  isSameStatus,
  judge,
  refused,
  SUSPENDED,
  statusOf,
} from "../../../../src/controllers/binding/conditions.ts";
import { AccessDenied, forbidden } from "../../../../src/kube/access-error.ts";
import { CONTROLLER, describeIdentity, serviceAccountIdentity } from "../../../../src/kube/identity.ts";
import type { TargetOutcome } from "../../../../src/targets/outcome.ts";
import { bindingOf, recordOf } from "../../objects.ts";
import { HARBOR } from "../../resources.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const LATER = new Date("2026-01-02T04:00:00.000Z");
const LATEST = new Date("2026-01-02T05:00:00.000Z");

const binding = (status?: Status, generation = 3): SecretBinding => bindingOf({ metadata: { generation }, status });

const record = (name: string, more: Partial<TargetStatus> = {}) => recordOf({ name, ...more });

const synced = (name: string): TargetOutcome => ({ record: record(name) });
const failed = (name: string, reason: Reason = "TargetNotFound", message = `${name} is not there`): TargetOutcome => ({
  record: record(name),
  problem: new Problem(reason, message),
});

describe("a binding", () => {
  it("is ready if every target has the current values", () => {
    assert.deepEqual(judge([synced("a")]), {
      ready: "True",
      reason: "Synced",
      message: "HarborCluster registry/a is up to date",
    });
  });

  it("is not ready if a target lacks them: the message names the first object, its problem, and how many more there are", () => {
    const verdict = judge([synced("a"), failed("b"), failed("c", "Conflict", "taken")]);
    assert.equal(verdict.reason, "TargetNotFound");
    assert.equal(verdict.message, "HarborCluster registry/b: b is not there (and 1 more, see status.problems)");
  });

  it("reports a withdrawn grant before other problems, because the copied value must be rotated", () => {
    const outcomes = [failed("a"), failed("b", "GrantWithdrawn", "rotate")];
    const verdict = judge(outcomes);
    assert.equal(verdict.reason, "GrantWithdrawn");
    assert.equal(verdict.message, "HarborCluster registry/b: rotate (and 1 more, see status.problems)");
  });

  it("that only protects is ready, unless a policy that protects is missing", () => {
    const protect = { writers: [] };
    const sources = [
      { secret: { name: "a" }, protect },
      { configMap: { name: "b" }, protect },
      { secret: { name: "c" } },
    ];
    const guard = bindingOf({ spec: { sources, targets: [] } });
    const [ready] = statusOf(guard, [], [], NOW).conditions ?? [];
    assert.deepEqual([ready?.status, ready?.reason], ["True", "Synced"]);
    assert.equal(ready?.message, "there are no targets to write, only Secret a, ConfigMap b to protect");
    const incomplete = { ready: "False", reason: "PolicyMissing", message: "a policy is missing" } as const;
    const [missing] = statusOf(guard, [], [], NOW, undefined, undefined, incomplete).conditions ?? [];
    assert.deepEqual([missing?.status, missing?.reason], ["False", "PolicyMissing"]);
  });

  it("is ready if no object matches, and says so", () => {
    const overview = { unresolved: [], notes: ["no object matches spec.targets[0]"] };
    assert.deepEqual(judge([], overview), {
      ready: "True",
      reason: "Synced",
      message: "no object matches spec.targets[0]",
    });
  });

  it("is not ready if it is not known which objects match", () => {
    const target = { apiVersion: "v1", kind: "ConfigMap" };
    const unknown = [{ target, problem: new Problem("Forbidden", "may not list") }];
    const { ready, reason, message } = judge([synced("a")], { unresolved: unknown, notes: [] });
    assert.deepEqual([ready, reason, message], ["False", "Forbidden", "ConfigMap objects: may not list"]);
  });

  it("reports a problem that all its targets share once", () => {
    const same = ["a", "b", "c"].map((name) => failed(name, "ServiceAccountNotFound", "no account"));
    assert.equal(judge(same).message, "HarborCluster registry/a: no account");
  });
});

describe("the status of a binding", () => {
  it("counts the synced targets, and has the observed generation", () => {
    const status = statusOf(binding(), [synced("a"), failed("b"), synced("c")], [], NOW);
    assert.equal(status.synced, "2/3");
    assert.equal(status.observedGeneration, 3);
    assert.equal(status.conditions?.[0]?.observedGeneration, 3);
    assert.deepEqual(
      status.targets?.map(({ name, reason, message }) => [name, reason, message]),
      [
        ["a", "Synced", undefined],
        ["b", "TargetNotFound", "b is not there"],
        ["c", "Synced", undefined],
      ],
    );
  });

  it("names the optional fields that were omitted, and the selectors that match nothing", () => {
    const overview = { unresolved: [], notes: ["no object matches spec.targets[1]"] };
    const status = statusOf(binding(), [{ ...synced("a"), note: "left out: spec.b: no key" }], [], NOW, overview);
    assert.equal(status.conditions?.[0]?.status, "True");
    assert.match(status.conditions[0].message, /; see the notes in status$/);
    assert.deepEqual(status.notes, overview.notes);
    assert.equal(status.targets?.[0]?.message, "left out: spec.b: no key");
  });

  it("lists readable copies as long as they are there, unless the binding acknowledges them", () => {
    const readable = { paths: ["spec.a", "spec.b"], note: "all can read it" };
    const applied = { ref: HARBOR, version: { uid: "u", resourceVersion: "1", generation: 1 } };
    const copied = (outcome: TargetOutcome, acknowledge: "ReadableCopies"[] = []) =>
      statusOf(bindingOf({ spec: { acknowledge } }), [outcome], [], NOW).targets?.[0]?.readablePaths;
    const before = record("a", { paths: ["spec.a"], readablePaths: ["spec.a", "spec.gone"] });
    assert.deepEqual(copied({ record: record("a", { paths: ["spec.a"] }), readable, applied }), ["spec.a"]);
    assert.deepEqual(copied({ record: before, problem: new Problem("SourceNotFound", "gone") }), ["spec.a"]);
    assert.equal(copied({ record: before, applied }), undefined);
    assert.equal(copied({ record: before }, ["ReadableCopies"]), undefined);
    const ready = statusOf(binding(), [{ record: before, readable, applied }], [], NOW).conditions?.[0];
    assert.equal(ready?.message, "HarborCluster registry/a has the value of 1 field");
  });

  it("has the condition Unknown while the binding is suspended, and keeps its records", () => {
    const before = statusOf(binding(), [synced("a")], [], NOW);
    const { conditions, targets, synced: count } = heldStatus(binding(before), SUSPENDED, NOW);
    assert.deepEqual([conditions?.[0]?.status, conditions?.[0]?.reason], ["Unknown", "Suspended"]);
    assert.deepEqual({ targets, count }, { targets: before.targets, count: before.synced });
  });

  it("keeps the state of the rollout while the binding is not processed", () => {
    const before = statusOf(binding(), [synced("a")], [], NOW, undefined, {
      status: { digestKeyID: "one", revision: 1, digests: {} },
      verdict: { ready: "True", reason: "RolledOut", message: "" },
    });
    const kept = heldStatus(binding(before), SUSPENDED, NOW);
    assert.deepEqual([kept.rollout, kept.conditions?.[1]], [before.rollout, before.conditions?.[1]]);
    const rollout = { digestKeyID: "one", revision: 2, digests: {} };
    const verdict = { ready: "False", reason: "RollingOut", message: "" } as const;
    const held = heldStatus(binding(before), SUSPENDED, NOW, { status: rollout, verdict });
    assert.deepEqual(held.rollout, rollout);
    const conditions = held.conditions?.map(({ type, status, reason }) => [type, status, reason]);
    assert.deepEqual(conditions, [
      ["Ready", "Unknown", "Suspended"],
      ["RolledOut", "False", "RollingOut"],
    ]);
  });

  it("keeps the records of objects that the spec no longer names, and is not ready while they remain", () => {
    const left = {
      ...failed("old", "Forbidden", "may not patch"),
      record: record("old", { paths: ["spec.a"], uid: "u1" }),
    };
    const status = statusOf(binding(), [synced("a")], [left], NOW);
    assert.equal(status.synced, "1/1");
    assert.equal(status.conditions?.[0]?.reason, "Forbidden");
    assert.deepEqual(status.targets?.[1], {
      ...record("old"),
      uid: "u1",
      paths: ["spec.a"],
      reason: "Forbidden",
      message: "may not patch",
    });
  });

  it("removes the message of a target that is synced again", () => {
    const before = { record: record("a", { reason: "Conflict", message: "taken" }) };
    assert.deepEqual(statusOf(binding(), [before], [], NOW).targets, [record("a")]);
  });

  it("has the time of the last change of the condition, in seconds", () => {
    const first = statusOf(binding(), [failed("a")], [], NOW);
    assert.equal(first.conditions?.[0]?.lastTransitionTime, "2026-01-02T03:04:05Z");
    const second = statusOf(binding(first), [failed("a", "Conflict", "taken")], [], LATER);
    assert.equal(second.conditions?.[0]?.reason, "Conflict");
    assert.equal(second.conditions?.[0]?.lastTransitionTime, "2026-01-02T03:04:05Z");
    const third = statusOf(binding(second), [synced("a")], [], LATER);
    assert.equal(third.conditions?.[0]?.lastTransitionTime, "2026-01-02T04:00:00Z");
  });

  it("is the same at a later time if nothing has changed, apart from becoming Stalled once", () => {
    const first = statusOf(binding(), [synced("a"), failed("b")], [], NOW);
    const before = statusOf(binding(first), [synced("a"), failed("b")], [], LATER);
    assert.deepEqual(
      [first, before].map(({ conditions }) => conditions?.at(-1)?.type),
      ["Reconciling", "Stalled"],
    );
    assert.ok(isSameStatus(before, statusOf(binding(before), [synced("a"), failed("b")], [], LATEST)));
    assert.ok(!isSameStatus(before, statusOf(binding(before), [synced("a"), synced("b")], [], LATER)));
    assert.ok(!isSameStatus(undefined, before));
  });

  it("reports what only an edit can fix before what is missing, and that before what ends by itself", () => {
    const reasonOf = (...reasons: Reason[]) =>
      statusOf(
        binding(),
        reasons.map((reason) => failed("a", reason)),
        [],
        NOW,
      ).conditions?.map(({ type, reason }) => `${type} ${reason}`);
    const [mistake, missing] = [
      ["Ready UnknownField", "Stalled UnknownField"],
      ["Ready Forbidden", "Reconciling Forbidden"],
    ];
    assert.deepEqual(reasonOf("Unavailable", "Forbidden", "UnknownField", "InvalidPath"), mistake);
    assert.deepEqual(reasonOf("Unavailable", "Forbidden", "SourceNotFound"), missing);
  });

  it("cuts long messages", () => {
    const status = statusOf(binding(), [failed("a", "Conflict", "x".repeat(5_000))], [], NOW);
    assert.equal(status.conditions?.[0]?.message.length, 1024);
    assert.equal(status.targets?.[0]?.message?.length, 1024);
  });

  it("equals what is read back from JSON", () => {
    const outcome = fc.record(
      {
        record: fc.record(
          {
            apiVersion: fc.string(),
            kind: fc.string(),
            name: fc.string(),
            reason: fc.string(),
            namespace: fc.string(),
            message: fc.string(),
            paths: fc.array(fc.string()),
          },
          { requiredKeys: ["apiVersion", "kind", "name", "reason"], noNullPrototype: true },
        ),
        problem: fc
          .tuple(fc.constantFrom(...(Object.keys(catalogue) as Reason[])), fc.string())
          .map(([reason, message]) => new Problem(reason, message)),
      },
      { requiredKeys: ["record"], noNullPrototype: true },
    );
    fc.assert(
      fc.property(fc.array(outcome), fc.array(outcome), fc.boolean(), (outcomes, left, isNew) => {
        const status = statusOf(binding(undefined, isNew ? 3 : 1), outcomes, left, NOW);
        assert.deepEqual(JSON.parse(JSON.stringify(status)), status);
      }),
    );
  });
});

describe("a binding whose account lacks permissions", () => {
  const denied = (name: string, namespace = "registry"): TargetOutcome => {
    const access = {
      identity: serviceAccountIdentity("registry", "inlay"),
      ref: { ...HARBOR, namespace },
      verbs: ["get"],
    };
    const refused = "ServiceAccount registry/inlay may not patch harborclusters/harbor";
    const says = namespace === "registry" ? refused : `namespace ${namespace} does not exist, or ${refused} in it`;
    return {
      record: record(name),
      problem: new AccessDenied(access, says, "kubectl create role one"),
    };
  };
  const lacking = (count: number, missingNamespaces: string[] = []) => ({
    commands: Array.from({ length: count }, (_, number) => `kubectl create role role-${number} -n registry`),
    words: Array.from({ length: count }, (_, number) => `get, list, watch on secrets/${"s".repeat(30)}-${number}`),
    missingNamespaces,
    isCut: false,
  });
  const statusFor = (outcomes: TargetOutcome[], more: object, rollout?: Parameters<typeof statusOf>[5]) =>
    statusOf(binding(), outcomes, [], NOW, { unresolved: [], notes: [], ...more }, rollout);
  const print = "kubectl get secretbinding harbor-s3 -n registry -o jsonpath='{.status.missingPermissions}'";

  it("has the commands for all of them in its condition, and in a field", () => {
    const { conditions, targets, missingPermissions } = statusFor([denied("a"), denied("b")], { lacking: lacking(2) });
    const all = lacking(2).commands;
    assert.equal(
      conditions?.[0]?.message,
      `HarborCluster registry/a: ServiceAccount registry/inlay may not patch harborclusters/harbor; allow all that this binding lacks with: ${all.join("; ")}`,
    );
    assert.equal(missingPermissions, all.join("\n"));
    const message = `ServiceAccount registry/inlay may not patch harborclusters/harbor; print the commands that allow it with: ${print}`;
    assert.deepEqual(
      targets?.map((each) => each.message),
      [message, message],
    );
  });

  it("lists them in words if the condition has no room for the commands, and says how to print these", () => {
    for (const count of [30, 100]) {
      const { conditions, missingPermissions } = statusFor([denied("a")], { lacking: lacking(count) });
      const { message = "" } = conditions?.[0] ?? {};
      assert.match(
        message,
        /; this binding lacks: get, list, watch on secrets\/s+-0; .*; and \d+ more; print the commands/,
      );
      assert.ok(message.endsWith(` with: ${print}`), message);
      assert.ok(message.length <= 1024);
      assert.equal(missingPermissions?.split("\n").length, count);
    }
  });

  it("names a namespace that does not exist, if the account may know that", () => {
    const { conditions } = statusFor([denied("a", "web")], { lacking: lacking(1, ["web"]) });
    assert.equal(
      conditions?.[0]?.message,
      "HarborCluster registry/a: there is no namespace web; create it with: kubectl create namespace web",
    );
  });

  it("keeps the message of another problem, and of a permission of Inlay itself", () => {
    const message = `${describeIdentity(CONTROLLER)} may not get secrets/inlay-digest-key; allow it with: kubectl apply`;
    const verdict = { ready: "False", reason: "Forbidden", message } as const;
    const { conditions } = statusFor([failed("a")], { lacking: lacking(1) }, { status: undefined, verdict });
    assert.deepEqual(
      conditions?.map((each) => [each.type, each.message]),
      [
        ["Ready", "HarborCluster registry/a: a is not there"],
        ["RolledOut", message],
        ["Reconciling", "see the condition Ready"],
      ],
    );
  });

  it("keeps the commands while it is not processed, because its targets refer to them", () => {
    const before = statusFor([denied("a")], { lacking: lacking(1) });
    const held = heldStatus(binding(before), SUSPENDED, NOW);
    assert.equal(held.missingPermissions, before.missingPermissions);
    assert.ok(held.targets?.[0]?.message?.endsWith(print));
    const released = { ...before, targets: [] };
    assert.equal(heldStatus(binding(released), SUSPENDED, NOW).missingPermissions, undefined);
  });

  it("says that there are other problems before the commands", () => {
    const outcomes = [denied("a"), failed("b"), failed("c", "Conflict")];
    const messageFor = (of: object) => statusFor(outcomes, { lacking: of }).conditions?.[0]?.message ?? "";
    const more = "harborclusters/harbor (and 2 more, see status.problems); ";
    assert.ok(messageFor(lacking(1)).includes(`${more}allow it with: kubectl`));
    assert.ok(messageFor(lacking(100)).includes(`${more}this binding lacks: `));
  });

  it("does not promise all commands if the status has only the first", () => {
    const { conditions, targets } = statusFor([denied("a")], { lacking: { ...lacking(64), isCut: true } });
    for (const { message } of [...(conditions?.slice(0, 1) ?? []), ...(targets ?? [])])
      assert.ok(message?.endsWith(`; print the first 64 commands that allow it with: ${print}`), message);
  });

  it("reports a rollout that lacks permissions like its targets", () => {
    const { problem } = denied("a");
    const verdict = { ready: "False", reason: "Forbidden", message: "replaced" } as const;
    const rollout = {
      status: undefined,
      verdict,
      problem: problem?.within("namespace web").with({ note: "the same for b" }),
    };
    const { conditions } = statusFor([], { lacking: lacking(1) }, rollout);
    assert.equal(
      conditions?.[1]?.message,
      `namespace web: ServiceAccount registry/inlay may not patch harborclusters/harbor; allow it with: ${lacking(1).commands}`,
    );
  });

  it("lists the first ten problems by their parts, each once, the one of the condition first", () => {
    const spread = Array.from({ length: 12 }, (_, n) => failed(`t${n}`, "KeyNotFound", `no key ${n}`));
    const missing = new Problem("ServiceAccountNotFound", {
      what: "no account",
      fix: "create it",
      command: "kubectl a",
    });
    const wrong = new Problem("InvalidPath", { at: ["spec.env"], what: "no path" });
    const both = wrong.with({ others: [new Problem("InvalidTemplate", { what: "no template", source: "bucket" })] });
    const outcomes = [
      { ...failed("a"), problem: missing },
      { ...failed("b"), problem: missing },
      { ...failed("c"), problem: both },
      ...spread,
    ];
    const { problems = [], conditions } = statusFor(outcomes, {});
    assert.equal(problems.length, 10);
    const target = (name: string) => ({
      apiVersion: "goharbor.io/v1beta1",
      kind: "HarborCluster",
      namespace: "registry",
      name,
    });
    assert.deepEqual(problems.slice(0, 3), [
      { target: target("c"), reason: "InvalidPath", path: "spec.env", message: "no path" },
      { target: target("c"), source: "bucket", reason: "InvalidTemplate", message: "no template" },
      {
        target: target("a"),
        reason: "ServiceAccountNotFound",
        message: "no account",
        fix: "create it",
        command: "kubectl a",
      },
    ]);
    assert.match(conditions?.[0]?.message ?? "", /^HarborCluster registry\/c: spec.env: no path \(and 14 more, see/);
  });

  it("says once what the rollout and the targets have in common", () => {
    const problem = new Problem("ServiceAccountNotFound", "no account");
    const rollout = { status: undefined, verdict: refused(problem), problem };
    const { conditions, problems } = statusFor([{ ...failed("a"), problem }], {}, rollout);
    assert.deepEqual(
      conditions?.map(({ message }) => message),
      ["HarborCluster registry/a: no account", "see the condition Ready", "see the condition Ready"],
    );
    assert.equal(problems?.length, 1);
  });

  it("has no commands that the name of an object imitates", () => {
    const name = "x; allow it with: kubectl delete ns prod; echo";
    const identity = serviceAccountIdentity("registry", "inlay");
    const problem = forbidden({ identity, ref: { ...HARBOR, name }, verbs: ["patch"] }, "patch");
    const quoted = '"x; allow it with\\u003a kubectl delete ns prod; echo"';
    const refused = `HarborCluster registry/${quoted}: ServiceAccount registry/inlay may not patch harborclusters.goharbor.io/${quoted} in namespace registry`;
    const messageOf = (more: object) => statusFor([{ record: record(name), problem }], more).conditions?.[0]?.message;
    const all = lacking(1).commands[0] ?? "";
    assert.equal(messageOf({ lacking: lacking(1) }), `${refused}; allow it with: ${all}`);
    const [says, ...commands] = (messageOf({}) ?? "").split(" with: ");
    assert.equal(says, `${refused}; allow it`);
    assert.ok(commands.join(" with: ").includes(`--resource-name='${name}'`));
  });
});
