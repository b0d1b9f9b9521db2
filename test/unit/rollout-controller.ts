/** The rollout of one binding with fakes of everything else: the API server, the sources, and the recorders. */
import assert from "node:assert/strict";
import { Installation } from "../../src/api/installation.ts";
import type { RolloutSpec, RolloutStatus } from "../../src/api/rollout.ts";
import type { JsonObject, KubeObject, ObjectRef } from "../../src/apimachinery/objects.ts";
import type { Problem } from "../../src/apimachinery/problem.ts";
import type { Notification } from "../../src/notifications/text.ts";
import { ConcurrencyLimiter } from "../../src/rollout/decide/concurrency.ts";
import { wrongPace } from "../../src/rollout/decide/pace.ts";
import type { RolloutDependencies } from "../../src/rollout/dependencies.ts";
import { DigestKeys } from "../../src/rollout/digest/keys.ts";
import { DigestCache } from "../../src/rollout/digest/values.ts";
import { RolloutController } from "../../src/rollout/rollout-controller.ts";
import type { RolloutResult } from "../../src/rollout/status.ts";
import type { NamespaceProblem } from "../../src/rollout/types.ts";
import type { LiveSource } from "../../src/transform/live-source.ts";
import type { Progress } from "../../src/workloads/progress.ts";
import type { Workload } from "../../src/workloads/workload.ts";
import { finish } from "../../src/workqueue/cpu-scheduler.ts";
import { dependenciesOf, fakeClient } from "./fakes.ts";
import { bindingOf, dependentOf, kubeObjectOf, rolloutSpecOf, targetOf } from "./objects.ts";
import { DEPLOYMENTS, SECRETS } from "./resources.ts";
import { watched } from "./sources/watched.ts";
import { secret } from "./transform/sources.ts";

export const CORE: ObjectRef = { resource: DEPLOYMENTS, namespace: "registry", name: "core" };
const BUCKET: ObjectRef = { resource: SECRETS, namespace: "registry", name: "bucket" };
const encoded = (text: string) => Buffer.from(text).toString("base64");
/** The Secret with the digest keys. */
const KEYS = kubeObjectOf({ kind: "Secret", data: { primary: encoded("one"), one: encoded("0".repeat(32)) } });

export class RolloutFixture {
  /** Whether its source is an object of the cluster. */
  isObject = true;
  /** The annotations that were written, in order. */
  readonly stamped: string[] = [];
  /** The changed keys of each logged restart, in order. */
  readonly restarted: string[] = [];
  /** The notifications, in order. */
  readonly notified: Notification[] = [];
  /** The statuses that were written before an action. */
  readonly noted: RolloutStatus[] = [];
  /** Which binding it is. */
  binding = "harbor";
  readonly #statuses = new Map<string, RolloutStatus | undefined>();
  spec: Partial<RolloutSpec> = {};
  workload: Partial<Workload> = {};
  readonly installation = new Installation({ ownNamespace: "inlay-system" });
  targets: ObjectRef[] = [];
  /** The progress of the Deployment. */
  progress: Progress = { state: "Done", message: "rolled out" };
  /** What the API server answers to a restart if it does not write it. */
  refused: (() => Error) | undefined;
  /** Whether the workloads are not known yet. */
  pending = false;
  /** Why the workloads can't be known. */
  problem: Problem | undefined;
  /** The namespaces whose workloads can't be known, and those of targets that lack the new values. */
  unknown: NamespaceProblem[] = [];
  held = new Map<string, string>();
  /** The workloads that the binding names and that do not exist. */
  missing: ObjectRef[] = [];
  /** Whether fields that are written after the rollout have other values at the first reconcile. */
  differs: boolean | Problem = false;
  /** What the API server answers to a read of a target. */
  read: () => Promise<KubeObject> = () => Promise.reject(new Error("nothing is read"));
  readonly slots = new ConcurrencyLimiter(
    () => this.installation.rollouts,
    () => undefined,
  );
  readonly #rolling: RolloutController;
  #generation = 1;

  constructor() {
    const ignore = () => undefined;
    const mergePatch = () => assert.fail("the key is there");
    const keys = new DigestKeys(fakeClient({ get: async () => KEYS, mergePatch }), "inlay-system");
    const deps = dependenciesOf<RolloutDependencies>({
      cpu: { steps: async (_: string, work) => finish(work) },
      client: { mergeFields: this.#merge, get: () => this.read() },
      installation: this.installation,
      bindings: { all: [] },
      events: { record: ignore, recordOn: ignore },
      propagation: { wrote: ignore },
      notifier: { notify: (each: Notification) => this.notified.push(each) },
      rollouts: { restarted: ignore, failed: ignore, ended: ignore, limited: ignore },
      log: { info: ({ changedKeys }: { changedKeys: string[] }) => this.restarted.push(changedKeys.join()) },
    });
    this.#rolling = new RolloutController(deps, new DigestCache(keys, deps.cpu), this.slots);
  }

  readonly #merge = async (_: unknown, ref: ObjectRef, patch: JsonObject): Promise<KubeObject> => {
    if (this.refused) throw this.refused();
    const { spec, metadata: guard } = patch as {
      spec: { template: { metadata: { annotations: Record<string, string> } } };
      metadata: { uid: string };
    };
    this.stamped.push(...Object.values(spec.template.metadata.annotations));
    const metadata = { name: ref.name, uid: guard.uid, resourceVersion: "2", generation: ++this.#generation };
    return { apiVersion: "apps/v1", kind: "Deployment", metadata };
  };

  /** The rollout in the binding's status. */
  get status(): RolloutStatus | undefined {
    return this.#statuses.get(this.binding);
  }

  /** The Deployment reads one key of the Secret, which has `value`. */
  async roll(value: string, sourceMismatch?: Problem): Promise<RolloutResult> {
    const spec = rolloutSpecOf(this.spec);
    const binding = bindingOf({
      metadata: { name: this.binding, uid: `uid-${this.binding}` },
      spec: { targets: this.targets.map(({ name }) => targetOf({ name })), rollout: spec },
      status: this.status && { rollout: this.status },
    });
    const dependent = dependentOf({ ref: CORE, workload: { progress: this.progress, ...this.workload } });
    const version = { version: `uid/${value}`, ...(this.isObject && { resourceVersion: value }) };
    const source: LiveSource = { ...secret({ key: value }), ...version };
    const rolled = await this.#rolling.roll(
      {
        binding,
        identity: "system:serviceaccount:registry:inlay",
        spec,
        wrong: wrongPace(spec, Date.now()),
        references: {
          steps: [{ name: undefined, timeoutMs: 600_000, onFailure: "Continue" }],
          lookups: [],
          closed: [],
          problem: undefined,
        },
        dependents: {
          all: [dependent],
          used: dependent.uses,
          pending: this.pending,
          unknown: this.unknown,
          missing: this.missing,
          unread: [],
          problem: this.problem,
        },
        sources: new Map([["bucket", watched(BUCKET)]]),
        targets: this.targets.map((ref) => ({ ref, isApart: false })),
        sourceRevisions: value,
        sourceObjects: new Map(),
        patienceMs: 0,
      },
      {
        read: { sources: new Map([["bucket", source]]), sourceMismatch },
        targets: { everywhere: undefined, namespaces: this.held },
        differs: this.differs,
        written: [],
      },
      async (status) => {
        this.noted.push(status);
        this.#statuses.set(this.binding, status);
      },
    );
    this.#statuses.set(this.binding, rolled.status);
    return rolled;
  }

  /** How many rollouts wait, by reason. */
  get waiting(): Map<string, number> {
    return this.#rolling.waiting;
  }

  /** Ends the rollout of the binding. */
  forget(): RolloutStatus | undefined {
    return this.#rolling.forget(`registry/${this.binding}`);
  }
}
