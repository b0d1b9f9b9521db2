/**
 * Makes, corrects and deletes the bindings that a controller generates in a namespace, such as those for Reloader's annotations,
 * and says when to look again. A binding that is as it has to be costs no request.
 */
import { bindingKey, type SecretBinding } from "../api/binding.ts";
import { sameJson, stringifyJson } from "../apimachinery/json.ts";
import type { JsonObject, ObjectRef } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import { SECRET_BINDINGS } from "../apimachinery/resources.ts";
import { refusal } from "../kube/access-error.ts";
import { isStatus } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import type { Identity } from "../kube/identity.ts";
import type { EventRecorder } from "../observability/events.ts";
import type { Log } from "../observability/log.ts";
import type { ContentionBudget } from "../targets/contention-budget.ts";
import { mapConcurrent } from "../workqueue/map-concurrent.ts";
import { soonest } from "../workqueue/soonest.ts";
import type { WorkResult } from "../workqueue/work-queue.ts";

/** The object that a binding is generated for. `namespace` is absent for one that belongs to the cluster. */
export interface Owner {
  apiVersion: string;
  kind: string;
  namespace?: string;
  name: string;
  uid: string;
}

/** A binding as it has to be. */
export interface GeneratedBinding {
  namespace: string;
  name: string;
  owner: Owner;
  spec: SecretBinding["spec"];
}

type Metadata = SecretBinding["metadata"];

/** What is particular to the controller that generates bindings. */
export interface Generator<G extends GeneratedBinding> {
  /** As whom they are written. */
  identity: Identity;
  fieldManager: string;
  /** What they are made of, for messages, such as `Reloader's annotations`. */
  origin: string;
  /** Whether it is someone else's, although it has the name of a generated one. */
  isOthers(binding: SecretBinding): boolean;
  /** Whether the binding is `desired`, or has one of the specs that the API server keeps in place of it. */
  matches(binding: SecretBinding, desired: G, kept: G["spec"][]): boolean;
  /** Whether it has to be deleted, and generated again after that: a change is not enough. */
  isReplaced(binding: SecretBinding, desired: G): boolean;
  /** The metadata as it has to be, beside what others say there. */
  metadataOf(desired: G, present?: Partial<Metadata>): Partial<Metadata>;
  /** What a binding that could not be written means to its owner. */
  consequence: string;
}

export interface GeneratedBindingServices {
  client: Pick<Client, "make" | "replace" | "delete">;
  contention: Pick<ContentionBudget, "mayWrite" | "wrote">;
  events: Pick<EventRecorder, "recordOn">;
  log: Pick<Log, "warn">;
}

const BACKOFF: WorkResult = { retry: "backoff" };
const DONE: WorkResult = { retry: "never" };

export class GeneratedBindings<G extends GeneratedBinding> {
  readonly #services: GeneratedBindingServices;
  readonly #generator: Generator<G>;
  readonly #unchanged: (key: string) => void;
  /** By the uid of a binding that we wrote, and that the API server keeps otherwise: what was written, and what became of it. */
  readonly #kept = new Map<string, { written: G["spec"]; kept: G["spec"][] }>();
  /** By the uid of a binding that we wrote: the version that we replaced last. Watches may show that one for a moment longer. */
  readonly #replaced = new Map<string, string | undefined>();
  /** The keys of the caller that are being synced, or will be at once since a binding has changed meanwhile. */
  readonly #syncing = new Set<string>();
  /** By the caller's key, and there by the key of each binding that could not be made, why. */
  readonly #failures = new Map<string, ReadonlyMap<string, Problem>>();

  /** `unchanged` is called with the key of a binding that was written and that no watch may show as changed. */
  constructor(services: GeneratedBindingServices, generator: Generator<G>, unchanged: (key: string) => void) {
    this.#services = services;
    this.#generator = generator;
    this.#unchanged = unchanged;
  }

  /** Another version's CRD has other defaults, and a webhook may have its own: what became of our own write counts too. */
  isAsGenerated(binding: SecretBinding, desired: G): boolean {
    const { written, kept = [] } = this.#kept.get(binding.metadata.uid) ?? {};
    return this.#generator.matches(binding, desired, sameJson(written, desired.spec) ? kept : []);
  }

  /** Whether a binding of the caller's key that is not as generated is about to be, and a watch will show it. */
  isUnderWay(key: string, { metadata: { uid, resourceVersion } }: SecretBinding): boolean {
    return this.#syncing.has(key) || (this.#replaced.has(uid) && this.#replaced.get(uid) === resourceVersion);
  }

  gone({ metadata }: SecretBinding): void {
    this.#kept.delete(metadata.uid);
    this.#replaced.delete(metadata.uid);
  }

  /**
   * Deletes `obsolete` bindings, and makes and corrects those that are `desired`. `find` returns the binding of that name, if
   * there is one. `key` is of the caller's own: what it said of its bindings before is replaced.
   */
  async sync(
    key: string,
    desired: readonly G[],
    obsolete: readonly SecretBinding[],
    find: (desired: G) => SecretBinding | undefined,
  ): Promise<WorkResult> {
    this.#syncing.add(key);
    let result: WorkResult | undefined;
    try {
      result = await this.#sync(key, desired, obsolete, find);
      return result;
    } finally {
      if (result?.retry !== "backoff") this.#syncing.delete(key);
    }
  }

  async #sync(
    key: string,
    desired: readonly G[],
    obsolete: readonly SecretBinding[],
    find: (desired: G) => SecretBinding | undefined,
  ): Promise<WorkResult> {
    const failures = new Map<string, Problem>();
    // Where a quota is used up, only deletions make room. One that fails keeps nothing else back.
    const [deleted] = await Promise.allSettled([mapConcurrent(obsolete, (each) => this.#delete(each))]);
    const before = this.failuresOf(key);
    const [written] = await Promise.allSettled([
      mapConcurrent(desired, (each) => this.#correct(each, find(each), before, failures)),
    ]);
    this.forget(key);
    if (failures.size > 0) this.#failures.set(key, failures);
    if (deleted.status === "rejected") throw deleted.reason;
    if (written.status === "rejected") throw written.reason;
    return soonest([...deleted.value, ...written.value]);
  }

  /** Why bindings could not be made or corrected the last time, by their names. */
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
      return await (present === undefined ? this.#make(ref, desired) : this.#repair(ref, present, desired));
    } catch (error) {
      const verb = present === undefined ? "create" : "update";
      const problem = refusal(error, { identity, ref, verbs: [verb] }, verb);
      if (problem.reason !== "Unavailable") this.#report(desired, problem, before, failures);
      throw problem;
    }
  }

  #make(ref: ObjectRef, desired: G): Promise<WorkResult> {
    const { identity, fieldManager, metadataOf } = this.#generator;
    const object = { metadata: metadataOf(desired), spec: desired.spec };
    return written(this.#services.client.make(identity, ref, object as object as JsonObject, fieldManager));
  }

  async #repair(ref: ObjectRef, present: SecretBinding, desired: G): Promise<WorkResult> {
    const { client, contention } = this.#services;
    const { identity, fieldManager, isOthers, isReplaced, metadataOf } = this.#generator;
    const { spec } = desired;
    if (this.isAsGenerated(present, desired) || isOthers(present) || isGoing(present)) return DONE;
    if (isReplaced(present, desired)) return this.#delete(present);
    const contender = `generated/${present.metadata.uid}`;
    const revision = stringifyJson(spec);
    const wait = contention.mayWrite(contender, revision, []);
    if (wait > 0) return { retry: "after", ms: wait };
    const metadata = { ...present.metadata, ...metadataOf(desired, present.metadata) };
    return written(
      client.replace(identity, ref, { ...present, metadata, spec }, fieldManager).then((now) => {
        contention.wrote(contender, revision);
        const { uid, resourceVersion } = present.metadata;
        // Else no watch shows it.
        if (now.metadata.resourceVersion !== resourceVersion) this.#replaced.set(uid, resourceVersion);
        this.#keep(present, now, desired);
      }),
    );
  }

  #keep(before: SecretBinding, now: SecretBinding, desired: G): void {
    const { uid, resourceVersion } = now.metadata;
    // While one CRD replaces another, watches may show the same version with the former one's defaults.
    const same = before.metadata.resourceVersion === resourceVersion ? [before.spec] : [];
    const kept = [now.spec, ...same].filter((spec) => !sameJson(spec, desired.spec));
    if (kept.length === 0) this.#kept.delete(uid);
    else this.#kept.set(uid, { written: desired.spec, kept });
    const binding = bindingKey(now);
    const what = `is not kept as it was made of ${this.#generator.origin}, and does nothing; a webhook may change it`;
    // If the write changed nothing, no watch shows it.
    if (this.isAsGenerated(now, desired)) this.#unchanged(binding);
    else this.#services.log.warn({ binding }, what);
  }

  /** Once for each binding that can't be made. */
  #report(
    { name: binding, owner }: G,
    problem: Problem,
    before: ReadonlyMap<string, Problem>,
    failures: Map<string, Problem>,
  ): void {
    const { namespace, name, uid } = owner;
    const note = `binding ${binding} could not be made, ${this.#generator.consequence}: ${problem.message}`;
    if (before.get(binding)?.message !== problem.message)
      this.#services.events.recordOn(
        { ...owner, metadata: { name, uid, ...(namespace && { namespace }) } },
        { type: "Warning", reason: "BindingNotMade", action: "Generate", note },
      );
    failures.set(binding, problem);
  }

  async #delete(binding: SecretBinding): Promise<WorkResult> {
    if (isGoing(binding)) return DONE;
    const { namespace = "", name } = binding.metadata;
    const ref = { resource: SECRET_BINDINGS, namespace, name };
    return written(this.#services.client.delete(this.#generator.identity, ref, binding));
  }
}

const isGoing = ({ metadata }: SecretBinding) => metadata.deletionTimestamp !== undefined;

/** Requeues where the binding has changed since it was read. */
async function written(write: Promise<unknown>): Promise<WorkResult> {
  try {
    await write;
    return DONE;
  } catch (error) {
    if (isStatus(error, 404) || isStatus(error, 409)) return BACKOFF;
    throw error;
  }
}
