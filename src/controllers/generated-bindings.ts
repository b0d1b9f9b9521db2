/**
 * Creates, corrects and deletes the bindings that a controller generates, such as those for Reloader's annotations. A binding
 * that needs no change costs no request.
 */
import { createHash } from "node:crypto";
import { bindingKey, type SecretBinding } from "../api/binding.ts";
import { isStub } from "../api/stub.ts";
import { canonicalJson, sameJson } from "../apimachinery/json.ts";
import type { JsonObject, ObjectRef, ObjectReference } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import { SECRET_BINDINGS } from "../apimachinery/resources.ts";
import { refusal } from "../kube/access-error.ts";
import { ApiError, isStatus } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import type { Identity } from "../kube/identity.ts";
import type { EventRecorder } from "../observability/events.ts";
import type { Log } from "../observability/log.ts";
import type { ContentionBudget } from "../targets/contention-budget.ts";
import { mapConcurrent } from "../workqueue/map-concurrent.ts";
import { soonest } from "../workqueue/soonest.ts";
import { BACKOFF, DONE, type WorkResult } from "../workqueue/work-queue.ts";

/** The same text for the same JSON, whatever the order of its keys. */
export const revisionOf = (value: object): string =>
  createHash("sha256").update(canonicalJson(value)).digest("base64url");

/** The object that a binding is generated for. */
export interface Owner extends ObjectReference {
  uid: string;
}

/** A binding as its generator wants it. */
export interface GeneratedBinding {
  namespace: string;
  name: string;
  owner: Owner;
  spec: SecretBinding["spec"];
}

type Metadata = SecretBinding["metadata"];

/** The parts that differ between the controllers that generate bindings. */
export interface Generator<G extends GeneratedBinding> {
  /** The account that writes the bindings. */
  identity: Identity;
  fieldManager: string;
  /** Where the bindings come from, for messages, such as `Reloader's annotations`. */
  origin: string;
  /** Whether another user created the binding, although it has the name of a generated one. */
  isForeign(binding: SecretBinding): boolean;
  /** Whether the binding is `desired`, or has one of the specs that the API server stores in place of it. */
  matches(binding: SecretBinding, desired: G, kept: G["spec"][]): boolean;
  /** Whether it must be deleted and created again, because an update is not enough. */
  isReplaced(binding: SecretBinding, desired: G): boolean;
  /** The wanted metadata, with what others have set there. */
  metadataOf(desired: G, present?: Partial<Metadata>): Partial<Metadata>;
  /** For messages: what the failure to write a binding means for its owner. */
  consequence: string;
}

export interface GeneratedBindingServices {
  client: Pick<Client, "createObject" | "replace" | "delete">;
  contention: Pick<ContentionBudget, "mayWrite" | "wrote">;
  events: Pick<EventRecorder, "recordOn">;
  log: Pick<Log, "warn">;
}

/** A finalizer may hold a namespace for long. No watch shows that a namespace of that name exists again. */
const LATER: WorkResult = { retry: "after", ms: 30_000 };

export class GeneratedBindings<G extends GeneratedBinding> {
  readonly #services: GeneratedBindingServices;
  readonly #generator: Generator<G>;
  readonly #unchanged: (key: string) => void;
  /** By the uid of a binding that the API server stores differently: what was written, and what was stored. */
  readonly #kept = new Map<string, { written: G["spec"]; kept: G["spec"][] }>();
  /** By the uid of a written binding: the version that was replaced last. Watches may show that version for a moment longer. */
  readonly #replaced = new Map<string, string | undefined>();
  /** The caller's keys that are being synced, or will be at once because a binding has changed meanwhile. */
  readonly #syncing = new Set<string>();
  /** By the caller's key and the name of the binding: why it could not be written. */
  readonly #failures = new Map<string, ReadonlyMap<string, Problem>>();

  /** `unchanged` is called with the key of a binding that was written without a change that a watch shows. */
  constructor(services: GeneratedBindingServices, generator: Generator<G>, unchanged: (key: string) => void) {
    this.#services = services;
    this.#generator = generator;
    this.#unchanged = unchanged;
  }

  /**
   * The defaults of another version's CRD, or a webhook, may change what was written: the stored form of Inlay's own write counts as generated.
   */
  isAsGenerated(binding: SecretBinding, desired: G): boolean {
    const { written, kept = [] } = this.#kept.get(binding.metadata.uid) ?? {};
    return this.#generator.matches(binding, desired, sameJson(written, desired.spec) ? kept : []);
  }

  /** Whether a binding that differs from the generated one is about to be corrected, and a watch will show that. */
  isUnderWay(key: string, { metadata: { uid, resourceVersion } }: SecretBinding): boolean {
    return this.#syncing.has(key) || (this.#replaced.has(uid) && this.#replaced.get(uid) === resourceVersion);
  }

  gone({ metadata }: SecretBinding): void {
    this.#kept.delete(metadata.uid);
    this.#replaced.delete(metadata.uid);
  }

  /**
   * Deletes the `obsolete` bindings, and creates or corrects the `desired` ones. `find` returns the existing binding of that
   * name, if any. Failures are kept by the caller's `key` until its next sync.
   */
  async sync(
    key: string,
    desired: readonly G[],
    obsolete: readonly SecretBinding[],
    find: (desired: G) => SecretBinding | undefined,
  ): Promise<WorkResult> {
    this.#syncing.add(key);
    let isRetried = false;
    try {
      const failures = new Map<string, Problem>();
      // If a quota is used up, only deletions free it. A failed deletion does not keep the writes back.
      const [deleted] = await Promise.allSettled([mapConcurrent(obsolete, (each) => this.#delete(each))]);
      const before = this.failuresOf(key);
      const [written] = await Promise.allSettled([
        mapConcurrent(desired, (each) => this.#correct(each, find(each), before, failures)),
      ]);
      this.forget(key);
      if (failures.size > 0) this.#failures.set(key, failures);
      if (deleted.status === "rejected") throw deleted.reason;
      if (written.status === "rejected") throw written.reason;
      const result = soonest([...deleted.value, ...written.value]);
      isRetried = result.retry === "backoff";
      return result;
    } finally {
      if (!isRetried) this.#syncing.delete(key);
    }
  }

  /** Why bindings could not be created or corrected at the last sync, by their names. */
  failuresOf(key: string): ReadonlyMap<string, Problem> {
    return this.#failures.get(key) ?? new Map();
  }

  forget(key: string): void {
    this.#failures.delete(key);
  }

  async #correct(
    desired: G,
    present: SecretBinding | undefined,
    before: ReadonlyMap<string, Problem>,
    failures: Map<string, Problem>,
  ): Promise<WorkResult> {
    const { identity } = this.#generator;
    const { namespace, name } = desired;
    const ref = { resource: SECRET_BINDINGS, namespace, name };
    try {
      return await (present === undefined ? this.#create(ref, desired) : this.#repair(ref, present, desired));
    } catch (error) {
      // The owner is deleted with the namespace, so it needs no binding.
      if (error instanceof ApiError && error.namespaceEnds && desired.owner.namespace === namespace) return LATER;
      const verb = present === undefined ? "create" : "update";
      const problem = refusal(error, { identity, ref, verbs: [verb] }, verb);
      if (problem.reason !== "Unavailable") this.#report(desired, problem, before, failures);
      throw problem;
    }
  }

  #create(ref: ObjectRef, desired: G): Promise<WorkResult> {
    const { identity, fieldManager, metadataOf } = this.#generator;
    const object = { metadata: metadataOf(desired), spec: desired.spec };
    return written(this.#services.client.createObject(identity, ref, object as object as JsonObject, fieldManager));
  }

  async #repair(ref: ObjectRef, present: SecretBinding, desired: G): Promise<WorkResult> {
    const { client, contention } = this.#services;
    const { identity, fieldManager, isForeign, isReplaced, metadataOf } = this.#generator;
    const { spec } = desired;
    if (this.isAsGenerated(present, desired) || isForeign(present) || isBeingDeleted(present)) return DONE;
    if (isReplaced(present, desired)) return this.#delete(present);
    // Only its stub is known. The binding reports that it is too large.
    if (isStub(present)) return DONE;
    const contender = `generated/${present.metadata.uid}`;
    const revision = revisionOf(spec);
    const wait = contention.mayWrite(contender, revision, []);
    if (wait > 0) return { retry: "after", ms: wait };
    const metadata = { ...present.metadata, ...metadataOf(desired, present.metadata) };
    return written(
      client.replace(identity, ref, { ...present, metadata, spec }, fieldManager).then((now) => {
        contention.wrote(contender, revision);
        const { uid, resourceVersion } = present.metadata;
        // If the version is the same, no watch shows the write.
        if (now.metadata.resourceVersion !== resourceVersion) this.#replaced.set(uid, resourceVersion);
        this.#keep(present, now, desired);
      }),
    );
  }

  #keep(before: SecretBinding, now: SecretBinding, desired: G): void {
    const { uid, resourceVersion } = now.metadata;
    // While one CRD replaces another, watches may show the same version with the former CRD's defaults.
    const same = before.metadata.resourceVersion === resourceVersion ? [before.spec] : [];
    const kept = [now.spec, ...same].filter((spec) => !sameJson(spec, desired.spec));
    if (kept.length === 0) this.#kept.delete(uid);
    else this.#kept.set(uid, { written: desired.spec, kept });
    const binding = bindingKey(now);
    const what = `the API server did not store the binding as generated from ${this.#generator.origin}, so it has no effect; check for a webhook that changes it`;
    // If the write changed nothing, no watch shows it.
    if (this.isAsGenerated(now, desired)) this.#unchanged(binding);
    else this.#services.log.warn({ binding }, what);
  }

  /** Records one event for each binding and message. */
  #report(
    { name: binding, owner }: G,
    problem: Problem,
    before: ReadonlyMap<string, Problem>,
    failures: Map<string, Problem>,
  ): void {
    const { namespace, name, uid } = owner;
    const note = `binding ${binding} could not be written, ${this.#generator.consequence}: ${problem.message}`;
    if (!problem.isSame(before.get(binding)))
      this.#services.events.recordOn(
        { ...owner, metadata: { name, uid, ...(namespace && { namespace }) } },
        { type: "Warning", reason: "BindingNotMade", action: "Generate", note },
      );
    failures.set(binding, problem);
  }

  async #delete(binding: SecretBinding): Promise<WorkResult> {
    if (isBeingDeleted(binding)) return DONE;
    const { identity } = this.#generator;
    const { namespace = "", name } = binding.metadata;
    const ref = { resource: SECRET_BINDINGS, namespace, name };
    try {
      return await written(this.#services.client.delete(identity, ref, binding));
    } catch (error) {
      throw refusal(error, { identity, ref, verbs: ["delete"] }, "delete");
    }
  }
}

const isBeingDeleted = ({ metadata }: SecretBinding) => metadata.deletionTimestamp !== undefined;

/** Requeues if the binding has changed since it was read. */
async function written(write: Promise<unknown>): Promise<WorkResult> {
  try {
    await write;
    return DONE;
  } catch (error) {
    if (isStatus(error, 404) || isStatus(error, 409)) return BACKOFF;
    throw error;
  }
}
