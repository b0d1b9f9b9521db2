/** Where the workloads of a binding are looked for, and what the rules of an installation permit. */
import assert from "node:assert/strict";
import { Installation, type WriteRule } from "../../../../src/api/installation.ts";
import type { Group, RolloutSpec } from "../../../../src/api/rollout.ts";
import { FieldPath } from "../../../../src/apimachinery/field-path.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { resolveRollout, type WorkloadLookup } from "../../../../src/rollout/discover/lookups.ts";
import { parseSources } from "../../../../src/sources/registry.ts";
import { finish, type RunSteps } from "../../../../src/workqueue/cpu-scheduler.ts";
import { bindingOf } from "../../bindings.ts";
import { WITHOUT_ADVICE } from "../../fakes.ts";
import { selectingTargetOf } from "../../objects.ts";
import { CONFIGMAPS, SECRETS } from "../../resources.ts";

const DISCOVERY = {
  ...WITHOUT_ADVICE,
  byKind: async (apiVersion: string, kind: string) => ({ ...CONFIGMAPS, group: apiVersion.split("/")[0] ?? "", kind }),
};
const AT_ONCE: RunSteps = async (work) => finish(work);
const WEB = { apiVersion: "v1", resource: "services", name: "web", scope: "Namespaced" };
const BINDING = bindingOf({
  sources: [{ secret: { name: "bucket", namespace: "storage" } }, { configMap: { name: "region" } }, { object: WEB }],
});
const ROLLOUT = {
  targets: [{ kind: "Deployment", name: "core" }],
  stamp: { annotation: "inlay.dev/rollout", value: "Revision" },
  timeout: "10m",
} as RolloutSpec;

const restarting = (restartPath: string) => ({
  ...ROLLOUT,
  targets: [{ apiVersion: "example.com/v1", kind: "Cluster", name: "main", restartPath }],
});

const namedBy = (sources: Map<string, Problem>) => ({ parsedSources: parseSources(BINDING), sources, objects: [] });

async function problemWith(rules: { deny?: WriteRule[]; allow?: WriteRule[] }, rollout: RolloutSpec = ROLLOUT) {
  const installation = new Installation({ ownNamespace: "inlay-system", ...rules });
  const services = { discovery: DISCOVERY, installation };
  const { closed, problem } = await resolveRollout(BINDING, rollout, namedBy(new Map()), services, AT_ONCE);
  return (problem ?? closed[0]?.problem)?.reason;
}

/** Where the consumers of a source are looked for, if its reference resolves to this. */
async function consumersOf(source: string, resolved?: Problem) {
  const rollout: RolloutSpec = { ...ROLLOUT, targets: [], consumersOf: [source], kinds: ["Deployment"] };
  const sources = new Map(resolved && [[source, resolved]]);
  const installation = new Installation({ ownNamespace: "inlay-system" });
  const services = { discovery: DISCOVERY, installation };
  const { lookups, problem } = await resolveRollout(BINDING, rollout, namedBy(sources), services, AT_ONCE);
  return problem?.message ?? lookups.map(({ namespace, find }) => ({ namespace, ...find, ...usesIn(find) }));
}
/** The values behind two keys, and behind all keys. */
const usesIn = (find: WorkloadLookup["find"]) =>
  find.by === "reference" && { uses: [find.uses(["a", "b"]), find.uses(undefined)] };
const rule = (path: string) => [{ kinds: ["Deployment"], paths: [FieldPath.parse(path)] }];

describe("the place of workloads", () => {
  it("is checked against the rules of the installation with the one annotation that is written", async () => {
    assert.equal(await problemWith({}), undefined);
    assert.equal(await problemWith({ deny: rule("spec.template") }), "ForbiddenPath");
    assert.equal(
      await problemWith({ deny: rule('spec.template.metadata.annotations["inlay.dev/rollout"]') }),
      "ForbiddenPath",
    );
    assert.equal(await problemWith({ deny: rule("spec.template.spec.containers") }), undefined);
    assert.equal(await problemWith({ allow: rule("spec.template.metadata.annotations") }), undefined);
    assert.equal(await problemWith({ allow: rule("spec.replicas") }), "ForbiddenPath");
  });

  it("is checked against the rules of the installation with the Job too, if a CronJob runs one", async () => {
    const nightly: RolloutSpec = { ...ROLLOUT, targets: [{ kind: "CronJob", name: "nightly" }] };
    const running = { ...nightly, runCronJobs: true };
    const cronJobs = { kinds: ["CronJob"] };
    const jobs = (path?: string) => ({ kinds: ["Job"], ...(path && { paths: [FieldPath.parse(path)] }) });
    assert.equal(await problemWith({ deny: [jobs()] }, nightly), undefined);
    assert.equal(await problemWith({ deny: [jobs()] }, running), "ForbiddenKind");
    assert.equal(await problemWith({ deny: [jobs("spec.template.spec.containers")] }, running), "ForbiddenPath");
    assert.equal(await problemWith({ deny: [jobs("metadata.finalizers")] }, running), undefined);
    assert.equal(await problemWith({ allow: [cronJobs] }, running), "ForbiddenKind");
    assert.equal(await problemWith({ allow: [cronJobs, jobs()] }, running), undefined);
    assert.equal(await problemWith({ deny: [jobs()] }, { ...ROLLOUT, runCronJobs: true }), undefined);
  });

  it("is the namespace of the Secret or ConfigMap whose consumers restart", async () => {
    const by = "reference";
    assert.deepEqual(await consumersOf("bucket"), [
      { namespace: "storage", by, kind: "Secret", name: "bucket", uses: [["bucket/a", "bucket/b"], ["bucket/*"]] },
    ]);
    assert.deepEqual(await consumersOf("region"), [
      { namespace: "registry", by, kind: "ConfigMap", name: "region", uses: [["region/a", "region/b"], ["region/*"]] },
    ]);
    assert.equal(await consumersOf("bucket", new Problem("OutOfScope", "it is elsewhere")), "it is elsewhere");
  });

  it("does not exist for an object that pods can't refer to, or that is not a source", async () => {
    const names = "use one of these: bucket, region";
    assert.equal(
      await consumersOf("web"),
      `spec.rollout.consumersOf: web is not a Secret, ConfigMap or SecretProviderClass; ${names}`,
    );
    assert.equal(await consumersOf("lost"), `spec.rollout.consumersOf: lost is not a source of this binding; ${names}`);
  });

  it("may be a kind without a pod template that has a restart field which a binding may write", async () => {
    const deny = [{ kinds: ["Cluster"], paths: [FieldPath.parse("spec")] }];
    assert.equal(await problemWith({}, restarting("spec.restartAt")), undefined);
    assert.equal(await problemWith({ deny }, restarting("spec.restartAt")), "ForbiddenPath");
    assert.equal(await problemWith({ deny }, restarting('metadata.annotations["restartedAt"]')), undefined);
    assert.equal(await problemWith({}, restarting("metadata.finalizers")), "ForbiddenPath");
    assert.equal(await problemWith({}, restarting("status.restartAt")), "ForbiddenPath");
    assert.equal(await problemWith({}, restarting("spec.nodes[0].restartAt")), "InvalidPath");
  });
});

/** The lookups for so many Secrets that are targets, and how often finding them was interrupted. */
async function consumersOfTargets(count: number, steps: Partial<Group>[]) {
  const target = selectingTargetOf({ apiVersion: "v1", kind: "Secret" });
  const objects = Array.from({ length: count }, (_, n) => ({
    ...{ target, selected: true },
    ref: { resource: SECRETS, namespace: "registry", name: `secret-${n}` },
  }));
  const group = (more: Partial<Group>, n: number) => ({
    ...{ name: `step-${n}`, onFailure: "Halt", consumersOfTargets: true, kinds: ["Deployment"] },
    ...more,
  });
  const rollout = { ...ROLLOUT, targets: [], steps: steps.map(group) } as RolloutSpec;
  const services = { discovery: DISCOVERY, installation: new Installation({ ownNamespace: "inlay-system" }) };
  let yields = 0;
  const counted: RunSteps = async (work) => {
    for (;;) {
      const step = work.next();
      if (step.done) return step.value;
      yields++;
    }
  };
  const subject = { ...namedBy(new Map()), objects };
  const { lookups, problem } = await resolveRollout(BINDING, rollout, subject, services, counted);
  return { lookups: lookups.map(({ step, resource }) => `${step} ${resource.kind}`), problem, yields };
}

describe("the lookups of a binding", () => {
  it("are shared between steps that look for the same consumers: they belong to the first step", async () => {
    const both: Partial<Group> = { kinds: ["Deployment", "CronJob"] };
    const ways: Partial<Group> = { consumersBy: ["Env"] };
    const { lookups } = await consumersOfTargets(1, [{}, both, both, ways, ways]);
    assert.deepEqual(lookups, ["0 Deployment", "1 CronJob", "3 Deployment"]);
  });

  it("have a limit, beyond which there are none and the problem says what to do", async () => {
    const kinds: Group["kinds"] = ["Deployment", "StatefulSet", "DaemonSet", "CronJob"];
    const most = await consumersOfTargets(5_000, [{ kinds }, { kinds }]);
    assert.deepEqual([most.lookups.length, most.problem], [20_000, undefined]);
    const beyond = await consumersOfTargets(5_000, [{ kinds }, { kinds: ["Job"] }]);
    assert.deepEqual([beyond.lookups.length, beyond.problem?.reason], [0, "InvalidBinding"]);
    assert.match(
      beyond.problem?.message ?? "",
      /^spec\.rollout .* at most 20,000; list fewer kinds, .*split the binding$/,
    );
  });

  it("are found in steps", async () => {
    const { yields } = await consumersOfTargets(5_000, [{}]);
    // One for the target, of which the values are found once.
    assert.equal(yields, 1 + Math.floor(5_000 / 256));
  });
});
