/** Writes the status and the finalizer of Inlay's own kinds, and records an event when an object stops being ready. */
import { isDeepStrictEqual } from "node:util";
import type { Condition } from "../api/binding.ts";
import { CONTROLLER_MANAGER } from "../api/field-manager.ts";
import { jsonLength } from "../apimachinery/json-length.ts";
import { BoundedMap } from "../apimachinery/maps.ts";
import {
  apiVersionOf,
  type JsonObject,
  type ObjectMeta,
  type ObjectRef,
  type Resource,
} from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { type ConditionReason, storedReason, WAITING_REASONS } from "../apimachinery/reasons.ts";
import { objectKey } from "../cache/reflector.ts";
import { ApiError, isNotFound, isStatus } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import { CONTROLLER } from "../kube/identity.ts";
import type { EventRecorder } from "../observability/events.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import { DONE, Outdated, type WorkResult } from "../workqueue/work-queue.ts";

/**
 * Thrown if an object has no room for its status or finalizer. An event reports that. The write is not repeated until the object changes, or the
 * status is smaller.
 */
export class StatusTooLarge extends Error {
  override readonly name = "StatusTooLarge";
  /** What is too large, and what to do. */
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(problem.message);
    this.problem = problem;
  }
}

/** Undefined if the object has no room for its status. */
export async function ifRoom<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof StatusTooLarge) return undefined;
    throw error;
  }
}

/** Work that ends if the object has no room for its status: a change of the object requeues it. */
export const untilTooLarge = async (work: Promise<WorkResult>): Promise<WorkResult> => (await ifRoom(work)) ?? DONE;

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
  encode(object: T, status: StatusOf<T>): S;
  /** Why an object with its status is too large to be kept. Without it, only the API server decides. */
  excessOf?(stored: S): string | undefined;
  /** Passes the API server's answer to the store. Returns it for the caller. */
  wrote(answer: S): T;
}

interface Services {
  client: Pick<Client, "replaceStatus" | "mergePatch">;
  events: Pick<EventRecorder, "recordOn">;
  log: Pick<Log, "warn">;
  metrics: Pick<Metrics, "limited">;
}

/** Of how many objects it is remembered that their status was too large. */
const MAX_REMEMBERED = 10_000;
const TOO_LARGE = "the object is larger than the API server stores";

export class StatusWriter<T extends StatusObject, S extends object> {
  readonly #services: Services;
  readonly #kind: StatusKind<T, S>;
  /** By uid: the version of an object that had no room for a status, and the size of that status. */
  readonly #refused = new BoundedMap<string, { resourceVersion: string; size: number }>(MAX_REMEMBERED);

  constructor({ client, events, log, metrics }: Services, kind: StatusKind<T, S>) {
    this.#services = { client, events, log, metrics };
    this.#kind = kind;
  }

  /**
   * Writes nothing if the status is the same. Returns the object as stored afterwards. Throws Outdated if there is a later version, or none, and
   * StatusTooLarge.
   */
  async writeStatus(object: T, status: StatusOf<T>): Promise<T> {
    return this.#write(object, status, this.#kind.excessOf);
  }

  /** Like `writeStatus`, for a status that differs in its conditions: only the API server decides whether it is too large. */
  async writeConditions(object: T, status: StatusOf<T>): Promise<T> {
    return this.#write(object, status, undefined);
  }

  async #write(object: T, status: StatusOf<T>, excessOf: ((stored: S) => string | undefined) | undefined): Promise<T> {
    const { encode } = this.#kind;
    const stored = encode(object, status);
    if (object.status !== undefined && isDeepStrictEqual(encode(object, object.status), stored)) return object;
    const { client } = this.#services;
    const write = () => client.replaceStatus(CONTROLLER, this.#refOf(object), stored, CONTROLLER_MANAGER);
    return this.#fitting(object, jsonLength(status as JsonObject), excessOf?.(stored), write);
  }

  /** Does not repeat a write for which the same version of the object had no room. */
  async #fitting(object: T, size: number, excess: string | undefined, write: () => Promise<S>): Promise<T> {
    const { uid, resourceVersion } = object.metadata;
    const known = this.#refused.get(uid);
    const isNew = known?.resourceVersion !== resourceVersion;
    const wasRefused = known !== undefined && !isNew && size >= known.size;
    if (excess === undefined && !wasRefused)
      try {
        const stored = this.#kind.wrote(await current(write()));
        this.#refused.delete(uid);
        // A smaller status had room. The larger one has none in this version either.
        if (known !== undefined && !isNew) this.#remember(stored, known.size);
        return stored;
      } catch (error) {
        if (!(error instanceof ApiError) || !error.isTooLarge) throw error;
      }
    this.#remember(object, wasRefused ? known.size : size);
    const { kind } = this.#kind.resource;
    const why = excess ?? TOO_LARGE;
    const note = `the status can't be written: with it, ${why}; make the ${kind} smaller, or split it`;
    if (isNew) {
      this.#services.metrics.limited("statusBytes");
      this.warn(object, "TooLarge", note);
    }
    throw new StatusTooLarge(new Problem("TooLarge", note));
  }

  #remember({ metadata: { uid, resourceVersion } }: T, size: number): void {
    this.#refused.set(uid, { resourceVersion, size });
  }

  /**
   * Records a warning when the first condition becomes False, or its reason or message changes, unless the object only waits. `object` is the
   * one from before.
   */
  recordEvent(object: T, status: StatusOf<T>): void {
    const [before, now] = [object.status?.conditions?.[0], status.conditions?.[0]];
    if (now?.status !== "False" || WAITING_REASONS.includes(now.reason)) return;
    if (before?.reason === now.reason && before.message === now.message) return;
    this.warn(object, storedReason(now.reason), now.message);
  }

  /** Records a warning as an event and in the log. */
  warn({ metadata }: T, reason: ConditionReason, note: string): void {
    const { events, log } = this.#services;
    const { resource, logKey } = this.#kind;
    const regarding = { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata };
    events.recordOn(regarding, { type: "Warning", reason, action: "Sync", note });
    log.warn({ [logKey]: objectKey(metadata.namespace, metadata.name), reason }, note);
  }

  /** Adds or removes the finalizer. Returns the object as stored afterwards. Throws Outdated. */
  async setFinalizer(object: T, isWanted: boolean): Promise<T> {
    const { finalizer } = this.#kind;
    const finalizers = object.metadata.finalizers ?? [];
    if (finalizer === undefined) throw new Error(`${this.#kind.resource.kind} has no finalizer`);
    if (isWanted === finalizers.includes(finalizer)) return object;
    const others = finalizers.filter((each) => each !== finalizer);
    const { resourceVersion } = object.metadata;
    const patch = { metadata: { resourceVersion, finalizers: isWanted ? [...others, finalizer] : others } };
    const { client } = this.#services;
    const write = () => client.mergePatch<S>(CONTROLLER, this.#refOf(object), patch, CONTROLLER_MANAGER);
    return this.#fitting(object, 0, undefined, write);
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
