/** A cluster-scoped kind that only tests have, and its controller, which keeps one binding for each object. */
import { bindingKey, type Condition, type SecretBinding } from "../../src/api/binding.ts";
import { conditionOf, type Verdict } from "../../src/api/verdict.ts";
import { sameJson } from "../../src/apimachinery/json.ts";
import { apiVersionOf, type ObjectMeta, type Resource } from "../../src/apimachinery/objects.ts";
import { Problem } from "../../src/apimachinery/problem.ts";
import type { ResourceStore } from "../../src/cache/resource-store.ts";
import { type GeneratedBinding, GeneratedBindings, type Generator } from "../../src/controllers/generated-bindings.ts";
import { StatusWriter } from "../../src/controllers/status-writer.ts";
import { CONTROLLER } from "../../src/kube/identity.ts";
import type { Controller } from "../../src/manager/manager.ts";
import type { Services } from "../../src/manager/start-controller.ts";
import { WorkQueue, type WorkResult } from "../../src/workqueue/work-queue.ts";
import type { Kind } from "../controller/kinds.ts";

export interface ClusterThing {
  metadata: ObjectMeta;
  spec: {
    /** The namespace of the binding. */
    namespace: string;
    secret: string;
    key: string;
    account?: string;
  };
  status?: { conditions?: Condition[] };
}

/** The content of a file apis/clusterthings.yaml. */
export const clusterThings: Kind = {
  group: "test.inlay.dev",
  kind: "ClusterThing",
  plural: "clusterthings",
  scope: "Cluster",
  spec: { type: "object", additionalProperties: { type: "string" } },
  status: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
};

/** The entry for src/apimachinery/resources.ts. */
const { group, kind, plural } = clusterThings;
const CLUSTER_THINGS: Resource = { group, version: "v1", kind, plural, namespaced: false, hasStatus: true };

export const FINALIZER = "test.inlay.dev/bindings";
const LABEL = "test.inlay.dev/thing";
const DONE: WorkResult = { retry: "never" };
const BACKOFF: WorkResult = { retry: "backoff" };

export const bindingOf = (thing: string): string => `thing-${thing}`;
/** The key of the object for which a binding was created. */
const thingOf = ({ metadata }: SecretBinding): string | undefined => metadata.labels?.[LABEL];

function desiredFor({ metadata: { name, uid }, spec }: ClusterThing): GeneratedBinding {
  return {
    namespace: spec.namespace,
    name: bindingOf(name),
    owner: { apiVersion: apiVersionOf(CLUSTER_THINGS), kind, name, uid },
    spec: {
      serviceAccountName: spec.account ?? "inlay",
      defaults: { onMissing: "Wait", onConflict: "Fail", mode: "Continuous" },
      sources: [{ secret: { name: spec.secret } }],
      targets: [
        {
          apiVersion: "goharbor.io/v1beta1",
          kind: "HarborCluster",
          name: "harbor",
          fields: [{ path: "spec.storage.spec.s3.accesskey", from: { source: spec.secret, key: spec.key } }],
        },
      ],
    },
  };
}

const GENERATOR: Generator<GeneratedBinding> = {
  identity: CONTROLLER,
  fieldManager: "clusterthing",
  origin: "ClusterThings",
  consequence: "so that nothing is written",
  isForeign: (binding) => thingOf(binding) === undefined,
  isReplaced: ({ metadata }, { owner }) => metadata.ownerReferences?.some(({ uid }) => uid === owner.uid) !== true,
  matches: ({ spec }, desired, kept) => [desired.spec, ...kept].some((each) => sameJson(spec, each)),
  metadataOf: ({ owner }, present = {}) => ({
    labels: { ...present.labels, [LABEL]: owner.name },
    ownerReferences: [owner],
  }),
};

export class ClusterThingController implements Controller {
  readonly name = "clusterthing";
  readonly store: ResourceStore<ClusterThing>;
  readonly queue = new WorkQueue({ concurrency: 4, backoffMs: { first: 100, most: 1_000 } });
  readonly #bindings: Services["bindings"];
  readonly #generated: GeneratedBindings<GeneratedBinding>;
  readonly #status: StatusWriter<ClusterThing, ClusterThing>;
  /** The key whose reconcile waits, and the promise that it waits for. */
  #held: { key: string; released: Promise<void>; release: () => void } | undefined;

  constructor(services: Services) {
    const store = services.storeOf<ClusterThing>(CLUSTER_THINGS);
    this.store = store;
    this.#bindings = services.bindings;
    this.#generated = new GeneratedBindings(services, GENERATOR, (key) => this.#bindingChanged(key));
    this.#status = new StatusWriter<ClusterThing, ClusterThing>(services, {
      resource: CLUSTER_THINGS,
      finalizer: FINALIZER,
      logKey: "thing",
      encode: (thing, status) => ({ ...thing, status }),
      wrote: (answer) => {
        store.wrote(answer);
        return answer;
      },
    });
    store.listen({
      changed: (key) => this.queue.add(key),
      gone: (key) => this.queue.add(key),
      synced: () => {
        for (const { metadata } of store.all) this.queue.add(metadata.name, "resync");
      },
    });
    services.bindings.listen({
      changed: (key, cause) => this.#bindingChanged(key, cause),
      gone: (_, binding) => {
        this.#generated.gone(binding);
        this.#thingChanged(binding);
      },
    });
  }

  /** Keeps the reconciles of a key waiting until `release`. */
  hold(key: string): void {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    this.#held = { key, released, release };
  }

  release(): void {
    this.#held?.release();
    this.#held = undefined;
  }

  async reconcile(key: string): Promise<WorkResult> {
    if (this.#held?.key === key) await this.#held.released;
    const thing = this.store.get(key);
    if (thing === undefined) return DONE;
    if (this.#bindings.state.phase !== "synced") return BACKOFF;
    const isGoing = thing.metadata.deletionTimestamp !== undefined;
    const stored = isGoing ? thing : await this.#status.setFinalizer(thing, true);
    const { namespace } = thing.spec;
    const things = this.store.all.filter(
      ({ metadata, spec }) => metadata.deletionTimestamp === undefined && spec.namespace === namespace,
    );
    const desired = things.map(desiredFor);
    const present = this.#bindings.in(namespace);
    try {
      const names = new Set(desired.map(({ name }) => name));
      const obsolete = [...present.values()].filter(
        (each) => thingOf(each) !== undefined && !names.has(each.metadata.name),
      );
      const result = await this.#generated.sync(namespace, desired, obsolete, ({ name }) => present.get(name));
      const own = present.get(bindingOf(key));
      if (isGoing && own === undefined) await this.#status.removeFinalizer(thing);
      if (isGoing || own === undefined || !this.#generated.isAsGenerated(own, desiredFor(thing))) return result;
      await this.#report(stored, { ready: "True", reason: "Ready", message: `the binding is ${bindingKey(own)}` });
      return result;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      await this.#report(stored, { ready: "False", reason: error.reason, message: error.message });
      return BACKOFF;
    }
  }

  async #report(thing: ClusterThing, verdict: Verdict): Promise<void> {
    const status = { conditions: [conditionOf("Ready", thing, verdict, new Date())] };
    await this.#status.writeStatus(thing, status);
    this.#status.recordEvent(thing, status);
  }

  #bindingChanged(key: string, cause: "change" | "resync" = "change"): void {
    const binding = this.#bindings.get(key);
    if (binding !== undefined) this.#thingChanged(binding, cause);
  }

  #thingChanged(binding: SecretBinding, cause: "change" | "resync" = "change"): void {
    const thing = thingOf(binding);
    if (thing !== undefined) this.queue.add(thing, cause);
  }
}
