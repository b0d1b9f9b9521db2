/** Writes the status and the finalizer of Inlay's own kinds, and records an event when an object stops being ready. */
import type { Condition } from "../api/binding.ts";
import { CONTROLLER_MANAGER } from "../api/field-manager.ts";
import { apiVersionOf, type ObjectMeta, type ObjectRef, type Resource } from "../apimachinery/objects.ts";
import { storedReason } from "../apimachinery/reasons.ts";
import { objectKey } from "../cache/reflector.ts";
import { isNotFound, isStatus } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import { CONTROLLER } from "../kube/identity.ts";
import type { EventRecorder } from "../observability/events.ts";
import type { Log } from "../observability/log.ts";
import { Outdated } from "../workqueue/work-queue.ts";

/** The part of an object that is read here. */
interface StatusObject {
  metadata: Pick<ObjectMeta, "name" | "namespace" | "uid" | "resourceVersion" | "finalizers">;
  status?: { conditions?: Condition[] };
}

type StatusOf<T extends StatusObject> = NonNullable<T["status"]>;

/** The parts that differ between kinds. `S` is an object as the API server stores it, `T` as the controller uses it. */
interface StatusKind<T extends StatusObject, S extends object> {
  resource: Resource;
  /** Undefined for a kind that needs no cleanup. */
  finalizer?: string;
  /** The name of an object in log lines, such as `binding`. */
  logKey: string;
  isSame(before: StatusOf<T> | undefined, status: StatusOf<T>): boolean;
  encode(object: T, status: StatusOf<T>): S;
  /** Passes the API server's answer to the store. Returns it for the caller. */
  wrote(answer: S): T;
}

interface Services {
  client: Pick<Client, "replaceStatus" | "mergePatch">;
  events: Pick<EventRecorder, "recordOn">;
  log: Pick<Log, "warn">;
}

export class StatusWriter<T extends StatusObject, S extends object> {
  readonly #services: Services;
  readonly #kind: StatusKind<T, S>;

  constructor({ client, events, log }: Services, kind: StatusKind<T, S>) {
    this.#services = { client, events, log };
    this.#kind = kind;
  }

  /** Writes nothing if the status is the same. Returns the object as stored afterwards. Throws Outdated if there is a later version, or none. */
  async writeStatus(object: T, status: StatusOf<T>): Promise<T> {
    const { isSame, encode, wrote } = this.#kind;
    if (isSame(object.status, status)) return object;
    const { client } = this.#services;
    const stored = encode(object, status);
    return wrote(await current(client.replaceStatus(CONTROLLER, this.#refOf(object), stored, CONTROLLER_MANAGER)));
  }

  /**
   * Records a warning when the first condition becomes False, or its reason or message changes. `object` is the one from before.
   */
  recordEvent(object: T, status: StatusOf<T>): void {
    const { events, log } = this.#services;
    const { resource, logKey } = this.#kind;
    const [before, now] = [object.status?.conditions?.[0], status.conditions?.[0]];
    if (now?.status !== "False" || (before?.reason === now.reason && before.message === now.message)) return;
    const regarding = { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata: object.metadata };
    events.recordOn(regarding, {
      type: "Warning",
      reason: storedReason(now.reason),
      action: "Sync",
      note: now.message,
    });
    const { namespace, name } = object.metadata;
    log.warn({ [logKey]: objectKey(namespace, name), reason: now.reason }, now.message);
  }

  /** Adds or removes the finalizer. Returns the object as stored afterwards. Throws Outdated. */
  async setFinalizer(object: T, isWanted: boolean): Promise<T> {
    const { finalizer, wrote } = this.#kind;
    const finalizers = object.metadata.finalizers ?? [];
    if (finalizer === undefined) throw new Error(`${this.#kind.resource.kind} has no finalizer`);
    if (isWanted === finalizers.includes(finalizer)) return object;
    const others = finalizers.filter((each) => each !== finalizer);
    const { resourceVersion } = object.metadata;
    const patch = { metadata: { resourceVersion, finalizers: isWanted ? [...others, finalizer] : others } };
    const { client } = this.#services;
    return wrote(await current(client.mergePatch<S>(CONTROLLER, this.#refOf(object), patch, CONTROLLER_MANAGER)));
  }

  /** Removes the finalizer of an object that is being deleted and may be gone already. */
  async removeFinalizer(object: T): Promise<void> {
    try {
      await this.setFinalizer(object, false);
    } catch (error) {
      if (!isStatus(error instanceof Outdated ? error.cause : error, 404)) throw error;
    }
  }

  #refOf({ metadata: { namespace, name } }: T): ObjectRef {
    return { resource: this.#kind.resource, name, ...(namespace !== undefined && { namespace }) };
  }
}

/** The answer of a write. Throws Outdated if the object is deleted, or has changed since it was read. */
async function current<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    if (!isNotFound(error) && !isStatus(error, 409)) throw error;
    throw new Outdated(error.message, { cause: error });
  }
}
