/** A controller that reconciles one binding in a cluster in memory: from the Secret bucket to the HarborCluster harbor. */
import assert from "node:assert/strict";
import type { SecretBinding, Status, TargetStatus } from "../../src/api/binding.ts";
import { NAMESPACES } from "../../src/apimachinery/resources.ts";
import { Reconciler } from "../../src/controllers/binding/reconciler.ts";
import { ConcurrencyLimiter } from "../../src/rollout/decide/concurrency.ts";
import { DigestKeys } from "../../src/rollout/digest/keys.ts";
import { DigestCache } from "../../src/rollout/digest/values.ts";
import { RolloutController } from "../../src/rollout/rollout-controller.ts";
import type { WorkResult } from "../../src/workqueue/work-queue.ts";
import { FakeCluster, type ReconcileDependencies } from "./cluster.ts";
import { bindingOf, targetOf } from "./objects.ts";
import { ACCOUNT, BUCKET, copying, KEY } from "./observed-state.ts";
import { HARBOR } from "./resources.ts";

export const SECOND = { ...HARBOR, name: "second" };

export class ReconcilerFixture {
  readonly cluster = new FakeCluster();
  #reconciler = this.#started();

  constructor() {
    this.cluster.put({ resource: NAMESPACES, name: "registry" }, {});
    this.cluster.put(ACCOUNT, {});
    for (const ref of [HARBOR, SECOND]) this.cluster.put(ref, { spec: {} });
    this.rotate("old");
    this.cluster.putBinding(copying());
  }

  reconcile(key = KEY): Promise<WorkResult> {
    return this.#reconciler.reconcile(key);
  }

  /** The API server publishes another schema of a target. */
  expire(): void {
    this.#reconciler.results.expire(KEY);
  }

  /** Brings the binding up to date. */
  async sync(): Promise<void> {
    await this.reconcile();
    assert.deepEqual(this.ready, ["True", "Synced"]);
    this.cluster.takeRequests();
  }

  /** Starts the controller again, with these parts in place of others. */
  restart(more: Partial<ReconcileDependencies>): void {
    this.#reconciler = this.#started(more);
  }

  /** Gives the source another value. */
  rotate(value: string): void {
    this.cluster.put(BUCKET, { data: { key: Buffer.from(value).toString("base64") } });
  }

  get binding(): SecretBinding {
    const binding = this.cluster.bindings.get(KEY);
    assert.ok(binding !== undefined);
    return binding;
  }

  /** Changes the spec of the binding. */
  edit(spec: Partial<SecretBinding["spec"]>): void {
    const { metadata, ...rest } = this.binding;
    const generation = (metadata.generation ?? 0) + 1;
    this.cluster.putBinding({ ...rest, metadata: { ...metadata, generation }, spec: { ...rest.spec, ...spec } });
  }

  /** Replaces the annotations of the binding. */
  annotate(annotations: Record<string, string>): void {
    const { metadata, ...rest } = this.binding;
    this.cluster.putBinding({ ...rest, metadata: { ...metadata, annotations } });
  }

  /** The conditions have been the same for this much longer. */
  age(ms: number): void {
    const { status, ...rest } = this.binding;
    const conditions = status?.conditions?.map((each) => {
      const time = new Date(Date.parse(each.lastTransitionTime) - ms);
      return { ...each, lastTransitionTime: time.toISOString().replace(/\.\d+Z$/, "Z") };
    });
    this.cluster.putBinding({ ...rest, status: { ...status, ...(conditions && { conditions }) } });
  }

  /** A user deletes the binding, which these finalizers keep. */
  delete(...finalizers: string[]): void {
    const { metadata, ...rest } = this.binding;
    const deletionTimestamp = "2026-01-01T00:00:00Z";
    this.cluster.putBinding({ ...rest, metadata: { ...metadata, deletionTimestamp, finalizers } });
  }

  /** The binding is gone, and another binding of its name names that HarborCluster. */
  recreate(name: string): void {
    this.#reconciler.gone(this.binding);
    const { metadata, ...created } = bindingOf({ spec: { targets: [targetOf({ name })] } });
    this.cluster.putBinding({ ...created, metadata: { ...metadata, uid: "uid-2" } });
  }

  get status(): Status {
    return this.binding.status ?? {};
  }
  get records(): readonly TargetStatus[] {
    return this.status.targets ?? [];
  }
  /** The status of each target. */
  get reasons(): string[] {
    return this.records.map(({ name, reason }) => `${name} ${reason}`);
  }
  get ready(): (string | undefined)[] {
    const { status, reason } = this.status.conditions?.find(({ type }) => type === "Ready") ?? {};
    return [status, reason];
  }

  /** Whether Inlay waits, or waits for a user. Undefined if it does neither. */
  get progress(): string | undefined {
    return this.status.conditions?.find(({ type }) => /^(Reconciling|Stalled)$/.test(type))?.type;
  }

  #started(more: Partial<ReconcileDependencies> = {}): Reconciler {
    const deps = this.cluster.dependencies(more);
    const { client, installation } = deps;
    const slots = new ConcurrencyLimiter(
      () => installation.rollouts,
      () => undefined,
    );
    const digests = new DigestCache(new DigestKeys(client, installation.ownNamespace), deps.cpu);
    return new Reconciler(deps, new RolloutController(deps, digests, slots));
  }
}
