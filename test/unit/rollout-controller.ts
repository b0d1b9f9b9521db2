/** A rollout of a binding of which all but the rollout itself is made up: the API server, the sources, and who records what. */

import type { RolloutRules } from "../../src/api/installation.ts";
import type { Dependent, RolloutSpec, RolloutStatus } from "../../src/api/rollout.ts";
import { FieldPath } from "../../src/apimachinery/field-path.ts";
import type { JsonObject, KubeObject, ObjectRef } from "../../src/apimachinery/objects.ts";
import type { Problem } from "../../src/apimachinery/problem.ts";
import { SecretValue } from "../../src/apimachinery/secret-value.ts";
import type { Seen } from "../../src/cache/cached-object.ts";
import type { Parts } from "../../src/parts.ts";
import { Slots } from "../../src/rollout/decide/concurrency.ts";
import { wrongPace } from "../../src/rollout/decide/pace.ts";
import type { DigestKeys } from "../../src/rollout/digest/keys.ts";
import { Rolling } from "../../src/rollout/rollout-controller.ts";
import type { Rolled } from "../../src/rollout/status.ts";
import type { LiveSource } from "../../src/transform/live-source.ts";
import type { Progress } from "../../src/workloads/progress.ts";
import type { Workload } from "../../src/workloads/workload.ts";
import { DEPLOYMENTS, IDLE, SECRETS } from "./resources.ts";

export const CORE: ObjectRef = { resource: DEPLOYMENTS, namespace: "registry", name: "core" };
const BUCKET: ObjectRef = { resource: SECRETS, namespace: "registry", name: "bucket" };
const POLICY = { onMissing: "Wait" as const, optional: false };

export class MadeUp {
  /** The annotations that were written, in order. */
  readonly stamped: string[] = [];
  /** What was said to have changed, in order. */
  readonly told: string[] = [];
  /** What status said before something was done. */
  readonly noted: RolloutStatus[] = [];
  /** Which binding it is. */
  binding = "harbor";
  readonly #statuses = new Map<string, RolloutStatus | undefined>();
  spec: Partial<RolloutSpec> = {};
  workload: Partial<Workload> = {};
  rules: RolloutRules = { suspend: false };
  targets: ObjectRef[] = [];
  /** How far the Deployment is. */
  progress: Progress = { state: "Done", message: "rolled out" };
  /** What the API server answers to a stamp, if it does not write it. */
  refused: (() => Error) | undefined;
  /** Whether it is not known yet which workloads there are. */
  pending = false;
  /** Why the workloads can't be known. */
  problem: Problem | undefined;
  /** What the API server answers to a read of a target. */
  read: () => Promise<KubeObject> = () => Promise.reject(new Error("nothing is read"));
  readonly slots = new Slots(
    () => this.rules,
    () => undefined,
  );
  readonly #rolling: Rolling;
  #generation = 1;

  constructor() {
    const ignore = () => undefined;
    const rules = () => this.rules;
    const parts = {
      client: { apply: this.#apply, get: () => this.read() },
      installation: {
        get rollouts() {
          return rules();
        },
      },
      bindings: { all: [] },
      events: { record: ignore, recordOn: ignore },
      propagation: { wrote: ignore },
      rollouts: { restarted: ignore, failed: ignore, ended: ignore },
      log: { info: ({ changed }: { changed: string[] }) => this.told.push(changed.join()) },
    } as unknown as Parts;
    const key = { id: "one", bytes: new SecretValue<Uint8Array>(Buffer.from("0".repeat(32))) };
    const keys = { primary: async () => key, byId: async (id: string) => (id === "one" ? key : undefined) };
    this.#rolling = new Rolling(parts, keys as unknown as DigestKeys, this.slots);
  }

  readonly #apply = async (_: unknown, ref: ObjectRef, uid: string, leaves: JsonObject): Promise<KubeObject> => {
    if (this.refused) throw this.refused();
    const { spec } = leaves as { spec: { template: { metadata: { annotations: Record<string, string> } } } };
    this.stamped.push(...Object.values(spec.template.metadata.annotations));
    const metadata = { name: ref.name, uid, resourceVersion: "2", generation: ++this.#generation };
    return { apiVersion: "apps/v1", kind: "Deployment", metadata };
  };

  /** The rollout as it stands in the binding's status. */
  get status(): RolloutStatus | undefined {
    return this.#statuses.get(this.binding);
  }

  /** The Deployment reads one key of the Secret, which holds `value`. */
  async roll(value: string, differ?: Problem): Promise<Rolled> {
    const metadata = { name: this.binding, namespace: "registry", uid: `uid-${this.binding}`, resourceVersion: "1" };
    const spec = {
      stamp: { annotation: "inlay.dev/rollout", value: "Revision" },
      timeout: "10m",
      ...this.spec,
    } as RolloutSpec;
    const status = this.status && { rollout: this.status };
    const binding = { metadata, spec: { sources: [], targets: this.targets, rollout: spec }, status } as never;
    const version: Seen = { uid: "uid-core", resourceVersion: "1", generation: 1 };
    const dependent: Dependent = {
      ref: CORE,
      version,
      workload: { ...IDLE, progress: this.progress, ...this.workload },
      stampAt: FieldPath.parse('spec.template.metadata.annotations["inlay.dev/rollout"]'),
      isRestartField: false,
      step: 0,
      uses: new Set(["bucket/key"]),
    };
    const none = new SecretValue({});
    const data = new Map([["key", new SecretValue<Uint8Array>(Buffer.from(value))]]);
    const source: LiveSource = {
      kind: "data",
      isSecret: true,
      description: "Secret registry/bucket",
      version: `uid/${value}`,
      policy: POLICY,
      data,
      annotations: none,
      labels: none,
    };
    const rolled = await this.#rolling.roll(
      {
        binding,
        identity: "system:serviceaccount:registry:inlay" as never,
        spec,
        wrong: wrongPace(spec, Date.now()),
        references: {
          steps: [{ name: undefined, timeoutMs: 600_000, onFailure: "Continue" }],
          lookups: [],
          problem: undefined,
        },
        dependents: { all: [dependent], used: dependent.uses, pending: this.pending, problem: this.problem },
        refs: new Map([["bucket", BUCKET]]),
        targets: this.targets,
        inputs: value,
        patienceMs: 0,
      },
      { sources: new Map([["bucket", source]]), differ },
      undefined,
      async (status) => {
        this.noted.push(status);
        this.#statuses.set(this.binding, status);
      },
    );
    this.#statuses.set(this.binding, rolled.status);
    return rolled;
  }

  /** Nothing is done for it any more. */
  forget(): RolloutStatus | undefined {
    return this.#rolling.forget(`registry/${this.binding}`);
  }
}
