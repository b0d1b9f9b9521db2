/** A cluster in memory for unit tests: it keeps the objects that a test creates, and records every request in order. */
import jsonPatch from "fast-json-patch";
import { bindingKey, type SecretBinding, type Status, type StoredBinding } from "../../src/api/binding.ts";
import { Installation } from "../../src/api/installation.ts";
import { asRecorded } from "../../src/api/status-records.ts";
import { stubOf } from "../../src/api/stub.ts";
import { isObject } from "../../src/apimachinery/json.ts";
import {
  apiVersionOf,
  type JsonObject,
  type JsonValue,
  type KubeObject,
  type ObjectMeta,
  type ObjectRef,
} from "../../src/apimachinery/objects.ts";
import type { Excess } from "../../src/cache/binding-room.ts";
import type { CompetingClaim, ResolvedTarget } from "../../src/cache/field-claims.ts";
import type { BindingDependencies } from "../../src/controllers/binding/dependencies.ts";
import { ApiError } from "../../src/kube/api-error.ts";
import type { JsonPatchOperation } from "../../src/kube/client.ts";
import { Propagation } from "../../src/observability/propagation.ts";
import type { RolloutDependencies } from "../../src/rollout/dependencies.ts";
import { actorOf } from "../../src/targets/actor.ts";
import { ContentionBudget } from "../../src/targets/contention-budget.ts";
import { Rejections } from "../../src/targets/rejections.ts";
import { CpuScheduler } from "../../src/workqueue/cpu-scheduler.ts";
import { entry } from "./apply/managed.ts";
import { dependenciesOf, immediately, WITHOUT_ADVICE } from "./fakes.ts";
import { FakeInformers, placeOf } from "./informers.ts";
import { CONFIGMAPS, HARBORS } from "./resources.ts";

/** The parts that reconcile a binding, with everything that they report. */
export type ReconcileDependencies = BindingDependencies & RolloutDependencies;

const KINDS = [CONFIGMAPS, HARBORS];
const ignore = () => undefined;

export class FakeCluster {
  /** Such as `inlay get secrets/bucket`, with the name of the account; `-` is the controller itself. */
  readonly requests: string[] = [];
  /** What the API server answers to these requests instead of processing them. */
  readonly refused = new Map<string, ApiError>();
  /** The API server processes these requests, and its answers get lost. */
  readonly lost = new Set<string>();
  /** The access reviews that the API server denies. */
  readonly denied = new Set<string>();
  /** Each status that was written to a binding. */
  readonly statuses: Status[] = [];
  /** The reasons of all events. */
  readonly events: string[] = [];
  readonly bindings = new Map<string, SecretBinding>();
  /** What older bindings claim in the objects that a binding writes. */
  readonly competing: CompetingClaim[] = [];
  /** The objects and paths that bindings were found to name. */
  readonly named: ResolvedTarget[] = [];
  readonly informers = new FakeInformers();
  /** The limits that were exceeded. */
  readonly limited: string[] = [];
  /** The store keeps only stubs of bindings, which exceed this limit. */
  keepsStubs = false;
  excess: Excess | undefined;
  /** The watches do not show changes yet. */
  lags = false;
  readonly #installation: Installation;
  readonly #objects = new Map<string, KubeObject>();
  #version = 100;

  constructor(installation = new Installation({ ownNamespace: "inlay-system" })) {
    this.#installation = installation;
  }

  /** Creates an object, or replaces the fields of one. */
  put(ref: ObjectRef, fields: JsonObject, more: Partial<ObjectMeta> = {}): void {
    const { resource, namespace, name } = ref;
    const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
    const made = { name, uid: `uid-${name}`, resourceVersion: "", generation: 0, ...(namespace && { namespace }) };
    const metadata = { ...made, ...this.#objects.get(placeOf(ref))?.metadata, ...more };
    this.#store(ref, { ...type, metadata, ...fields });
  }

  /** Creates a binding, or replaces it. */
  putBinding(binding: SecretBinding): void {
    this.bindings.set(bindingKey(binding), { ...binding, metadata: { ...binding.metadata, ...this.#next() } });
  }

  delete(ref: ObjectRef): void {
    this.#objects.delete(placeOf(ref));
    this.informers.objects.delete(placeOf(ref));
  }

  find(ref: ObjectRef): KubeObject | undefined {
    return this.#objects.get(placeOf(ref));
  }

  /** The requests since the last call. */
  takeRequests(): string[] {
    return this.requests.splice(0);
  }

  /** Those of them that are not reads. */
  takeWrites(): string[] {
    return this.takeRequests().filter((request) => !request.includes(" get "));
  }

  /** The watches show the present objects. */
  catchUp(): void {
    this.lags = false;
    for (const [place, { metadata }] of this.#objects) {
      const { uid, resourceVersion, generation } = metadata;
      this.informers.objects.set(place, { uid, resourceVersion, generation });
    }
  }

  /** The parts of a controller of this cluster. */
  dependencies(more: Partial<ReconcileDependencies> = {}): ReconcileDependencies {
    const record = (_: unknown, { reason }: { reason: string }) => this.events.push(reason);
    const deps = dependenciesOf<ReconcileDependencies>({
      client: this.#client,
      sourceReads: this.#client,
      watcher: this.informers,
      polls: { subscribe: ignore, stateOf: () => ({ phase: "pending" }), isRefreshed: () => true },
      connections: { get: () => undefined },
      installation: this.#installation,
      discovery: {
        ...WITHOUT_ADVICE,
        byKind: async (_: string, kind: string) => KINDS.find((each) => each.kind === kind),
        forget: ignore,
      },
      versions: { expectWrite: () => {} },
      cpu: new CpuScheduler(),
      metrics: { limited: (limit: string) => this.limited.push(limit) },
      schemas: { of: async () => undefined, renew: async () => false, revision: 0 },
      bindings: {
        all: [],
        get: (key: string) => {
          const binding = this.bindings.get(key);
          return binding && this.keepsStubs ? (stubOf(binding as StoredBinding) as SecretBinding) : binding;
        },
        wrote: asRecorded,
        resolved: async (_: string, named: readonly ResolvedTarget[]) => void this.named.push(...named),
        released: ignore,
        excessOf: () => this.excess,
        restore: () => {
          this.keepsStubs = false;
          return true;
        },
        competingClaims: () => immediately(this.competing),
      },
      contention: new ContentionBudget(),
      rejections: new Rejections(),
      kindDeletions: { isOngoing: async () => false },
      events: { record, recordOn: record },
      propagation: new Propagation(ignore),
      log: { info: ignore, warn: ignore },
      incomplete: () => undefined,
      actorOf: (binding: SecretBinding) => actorOf(binding, this.#installation),
    });
    return { ...deps, ...more };
  }

  readonly #client = {
    get: async (identity: string, ref: ObjectRef) => {
      this.#admit(identity, "get", ref);
      return this.#found(ref);
    },

    list: (identity: string, resource: ObjectRef["resource"], namespace: string, { fields = "" } = {}) =>
      this.#listed(identity, { resource, namespace, name: fields.replace("metadata.name=", "") }),

    may: async (identity: string, verb: string, resource: ObjectRef["resource"], namespace: string, name: string) =>
      !this.denied.has(this.#admit(identity, `may ${verb}`, { resource, namespace, name })),

    apply: async (identity: string, ref: ObjectRef, uid: string, leaves: JsonObject, how: { fieldManager: string }) => {
      const request = this.#admit(identity, "apply", ref);
      const live = this.#found(ref);
      const { metadata, ...fields } = leaves;
      const { resourceVersion } = metadata as JsonObject;
      if (uid !== live.metadata.uid || resourceVersion !== live.metadata.resourceVersion) throw conflict(request);
      const others = live.metadata.managedFields?.filter(({ manager }) => manager !== how.fieldManager) ?? [];
      const ours = entry(how.fieldManager, [], { fieldsV1: heldIn(fields) });
      const written = this.#store(ref, {
        ...live,
        spec: { ...(live["spec"] as JsonObject), ...(fields["spec"] as JsonObject) },
        metadata: { ...live.metadata, managedFields: [...others, ours] },
      });
      if (this.lost.has(request)) throw new ApiError(request, 0, "ECONNRESET");
      return written;
    },

    jsonPatch: async (identity: string, ref: ObjectRef, operations: JsonPatchOperation[]) => {
      const request = this.#admit(identity, "patch", ref);
      const live = this.#found(ref);
      const patched = jsonPatch.applyPatch(structuredClone(live), operations as never[]).newDocument;
      if (patched.metadata.resourceVersion !== live.metadata.resourceVersion) throw conflict(request);
      return this.#store(ref, patched);
    },

    replaceStatus: async (identity: string, ref: ObjectRef, given: StoredBinding) => {
      const request = this.#admit(identity, "status", ref);
      const binding = asRecorded(given);
      if (binding.status) this.statuses.push(binding.status);
      return this.#keep(request, binding, {});
    },

    mergePatch: async (identity: string, ref: ObjectRef, { metadata }: Pick<SecretBinding, "metadata">) => {
      const request = this.#admit(identity, `finalizers [${metadata.finalizers}]`, ref);
      const binding = this.bindings.get(`${ref.namespace}/${ref.name}`);
      if (binding === undefined) throw new ApiError(request, 404, "NotFound");
      const { resourceVersion, finalizers = [] } = metadata;
      return this.#keep(request, { ...binding, metadata: { ...binding.metadata, resourceVersion } }, { finalizers });
    },
  };

  /** Records a request. Throws the API server's answer if it does not process the request. */
  #admit(identity: string, verb: string, { resource, name }: ObjectRef): string {
    const request = `${identity.split(":").at(-1) || "-"} ${verb} ${resource.plural}/${name}`;
    this.requests.push(request);
    const refused = this.refused.get(request);
    if (refused !== undefined) throw refused;
    return request;
  }

  /** The binding of that name. */
  async *#listed(identity: string, ref: ObjectRef): AsyncGenerator<KubeObject[], void> {
    this.#admit(identity, "list", ref);
    const found = this.bindings.get(`${ref.namespace}/${ref.name}`);
    yield found === undefined ? [] : [found as object as KubeObject];
  }

  #found(ref: ObjectRef): KubeObject {
    const found = this.#objects.get(placeOf(ref));
    if (found === undefined) throw new ApiError(`GET ${placeOf(ref)}`, 404, "NotFound");
    return found;
  }

  #store(ref: ObjectRef, object: KubeObject): KubeObject {
    const generation = (object.metadata.generation ?? 0) + 1;
    const metadata = { ...object.metadata, ...this.#next(), generation };
    const stored = { ...object, metadata };
    this.#objects.set(placeOf(ref), stored);
    const { uid, resourceVersion } = metadata;
    if (!this.lags) this.informers.objects.set(placeOf(ref), { uid, resourceVersion, generation });
    return stored;
  }

  /** Writes a binding, if it has the stored version. */
  #keep(request: string, binding: SecretBinding, more: Partial<ObjectMeta>): SecretBinding {
    const key = bindingKey(binding);
    if (this.bindings.get(key)?.metadata.resourceVersion !== binding.metadata.resourceVersion) throw conflict(request);
    const kept = { ...binding, metadata: { ...binding.metadata, ...more, ...this.#next() } };
    this.bindings.set(key, kept);
    return kept;
  }

  #next(): { resourceVersion: string } {
    return { resourceVersion: String(++this.#version) };
  }
}

const conflict = (request: string) => new ApiError(request, 409, "Conflict");

/** What an apply of these fields owns, as fieldsV1. */
function heldIn(value: JsonValue): JsonObject {
  if (!isObject(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [`f:${key}`, heldIn(child)]));
}
