/** Workloads for tests, which KWOK's node runs, and the number of their restarts. */
import assert from "node:assert/strict";
import type { AnyObject } from "./api.ts";
import { eventually } from "./eventually.ts";
import { type Rule, type TestNamespace, usualRules } from "./test-namespace.ts";

/** The additional permissions of an account that restarts workloads. */
export const rolloutRules: Rule[] = [
  ...usualRules,
  { apiGroups: ["apps"], resources: ["replicasets", "controllerrevisions"], verbs: ["list"] },
  {
    apiGroups: ["apps"],
    resources: ["deployments", "statefulsets", "daemonsets"],
    verbs: ["get", "list", "watch", "patch"],
  },
];

interface Pods {
  /** By Secret: the keys that the environment refers to. */
  env?: Record<string, string[]>;
  /** Secrets whose keys are all in the environment. */
  envFrom?: string[];
  replicas?: number;
  /** Added to the spec of the workload. */
  spec?: object;
  /** Added to the spec of its pods. */
  pods?: object;
}

export function deployment(name: string, { env = {}, envFrom = [], replicas = 1, spec, pods }: Pods = {}): object {
  const labels = { app: name };
  const variables = Object.entries(env).flatMap(([secret, keys]) =>
    keys.map((key) => ({
      name: `${secret}_${key}`.replaceAll(/[^A-Za-z0-9]/g, "_"),
      valueFrom: { secretKeyRef: { name: secret, key } },
    })),
  );
  const container = {
    name: "app",
    image: "app",
    env: variables,
    envFrom: envFrom.map((secret) => ({ secretRef: { name: secret } })),
    readinessProbe: { exec: { command: ["true"] } },
  };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [container], ...pods } },
      ...spec,
    },
  };
}

/** The revision of a pod template, from the annotation of a Deployment or ReplicaSet. */
const revisionOf = ({ metadata }: AnyObject): number =>
  Number(metadata.annotations?.["deployment.kubernetes.io/revision"] ?? 1);

/** Whether some of its pods are outdated or missing. */
export function isRolling({ metadata, spec, status }: AnyObject): boolean {
  const { observedGeneration, updatedReplicas = 0, replicas = 0, availableReplicas = 0 } = status;
  const all = [updatedReplicas, replicas, availableReplicas];
  return observedGeneration !== metadata.generation || all.some((count) => count !== spec.replicas);
}

/** The Deployment that a barrier restarts. It is not part of what is tested. */
export const PULSE = "pulse-rollout";

/** The workloads of a team. */
export class Workloads {
  readonly #team: TestNamespace;

  constructor(team: TestNamespace) {
    this.#team = team;
  }

  path(name: string): string {
    return `${this.#team.path("apps/v1", "deployments")}/${name}`;
  }

  /** Creates Deployments, and waits until their pods run. */
  async deploy(all: Record<string, Pods>): Promise<void> {
    const collection = this.#team.path("apps/v1", "deployments");
    await Promise.all(
      Object.entries(all).map(([name, pods]) => this.#team.api.create(collection, deployment(name, pods))),
    );
    await this.run(Object.keys(all));
  }

  /** Waits until all replicas have the current template. */
  async run(names: readonly string[]): Promise<void> {
    await eventually(async () => {
      const { items } = await this.#team.api.get(this.#team.path("apps/v1", "deployments"));
      const found = items.filter(({ metadata }: AnyObject) => names.includes(metadata.name));
      const behind = found.filter(isRolling);
      assert.deepEqual(
        behind.map(({ metadata }: AnyObject) => metadata.name),
        [],
      );
      assert.equal(found.length, names.length);
    }, 60_000);
  }

  /**
   * How often each Deployment has restarted since its creation: each restart has a new ReplicaSet. Asserts that none was reused.
   */
  async restarts(): Promise<Record<string, number>> {
    const { items } = await this.#team.api.get(this.#team.path("apps/v1", "deployments"));
    const tested = items.filter(({ metadata }: AnyObject) => metadata.name !== PULSE);
    return Object.fromEntries(tested.map((each: AnyObject) => [each.metadata.name, revisionOf(each) - 1]));
  }

  /** Does what `kubectl rollout undo` does: writes the pod template of the previous ReplicaSet back. */
  async undo(name: string): Promise<void> {
    const { metadata } = await this.#team.api.get(this.path(name));
    const { items } = await this.#team.api.get(this.#team.path("apps/v1", "replicasets"));
    const own = items.filter(({ metadata: { ownerReferences = [] } }: AnyObject) =>
      ownerReferences.some(({ uid }: AnyObject) => uid === metadata.uid),
    );
    const [, { spec }] = own.toSorted((a: AnyObject, b: AnyObject) => revisionOf(b) - revisionOf(a));
    const { "pod-template-hash": _, ...labels } = spec.template.metadata.labels;
    const value = { ...spec.template, metadata: { ...spec.template.metadata, labels } };
    await this.#team.api.jsonPatch(this.path(name), [{ op: "replace", path: "/spec/template", value }], "kubectl");
  }

  /** The annotations of the pod template. */
  async annotations(name: string): Promise<Record<string, string>> {
    return (await this.#team.api.get(this.path(name))).spec.template.metadata.annotations ?? {};
  }

  /** Waits until the condition of the binding's rollout has that reason, and returns the binding. */
  async until(binding: string, reason: string, withinMs = 30_000): Promise<AnyObject> {
    return eventually(async () => {
      const found = await this.#team.binding(binding);
      const said = found.status?.conditions?.find(({ type }: AnyObject) => type === "RolledOut");
      const message = JSON.stringify(found.status);
      assert.equal(said?.reason, reason, message);
      assert.equal(said.observedGeneration, found.metadata.generation, message);
      return found;
    }, withinMs);
  }

  /** The same, after that number of rollouts. */
  async rolledOut(binding: string, revision: number, withinMs = 30_000): Promise<AnyObject> {
    return eventually(async () => {
      const found = await this.until(binding, "RolledOut", withinMs);
      assert.equal(found.status.rollout.revision, revision);
      return found;
    }, withinMs);
  }
}
