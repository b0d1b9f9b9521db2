/**
 * Writes Kubernetes events about bindings, which `kubectl describe` shows. Works in the background: a reconcile never waits for an event,
 * and an event that can't be written is dropped. Namespaces take turns, and in each the objects.
 */
import { randomBytes } from "node:crypto";
import type { SecretBinding } from "../api/binding.ts";
import { getOrInsert } from "../apimachinery/maps.ts";
import type { EventReason } from "../apimachinery/reasons.ts";
import { EVENTS } from "../apimachinery/resources.ts";
import type { Client } from "../kube/client.ts";
import { CONTROLLER } from "../kube/identity.ts";
import { RoundRobinQueue } from "../workqueue/round-robin-queue.ts";

/** The API server accepts 1024 bytes of UTF-8 as an event's note. The rest is a margin for a truncated character. */
export const MAX_NOTE_BYTES = 1000;
const AT_ONCE = 2;
/** An event costs the API server a third of the write that it reports. The rate is that of client-go, with a smaller burst. */
const PER_SECOND = 20;
const FIRST_FEW = 30;
/** For each namespace and type. */
const MAX_BACKLOG_LENGTH = 500;
/** After so many warnings, an event of the type Normal is written. */
const MAX_WARNINGS = 3;
/** How long stopping waits for events that are still queued. */
const STOP_WITHIN_MS = 5_000;

export interface EventMessage {
  type: "Normal" | "Warning";
  reason: EventReason;
  /** The action of the controller, such as Sync or Release. */
  action: string;
  note: string;
}

/** The object that an event is about. */
interface Regarding {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string | undefined; uid: string; resourceVersion?: string | undefined };
}

type Write = () => Promise<void>;

/** The queued events of one type, by namespace and object. */
class Backlog {
  /** In the order of their turns, none of them empty. */
  readonly #namespaces = new Map<string, RoundRobinQueue<Write>>();

  /** Returns whether an event of the namespace was dropped. */
  add({ namespace = "", uid }: Regarding["metadata"], key: string, write: Write): boolean {
    const queue = getOrInsert(this.#namespaces, namespace, () => new RoundRobinQueue<Write>(MAX_BACKLOG_LENGTH));
    return queue.set(uid, key, write);
  }

  next(): Write | undefined {
    for (const [namespace, queue] of this.#namespaces) {
      const write = queue.next();
      this.#namespaces.delete(namespace);
      if (queue.size > 0) this.#namespaces.set(namespace, queue);
      return write;
    }
    return undefined;
  }

  clear(): void {
    this.#namespaces.clear();
  }
}

export class EventRecorder {
  readonly #client: Pick<Client, "create">;
  readonly #instance: string;
  readonly #dropped: () => void;
  /** Warnings have their own queue, so that they do not wait behind many successes. */
  readonly #backlog = { Warning: new Backlog(), Normal: new Backlog() };
  /** How many warnings were written since the last event of the type Normal. */
  #warnings = 0;
  readonly #underWay = new Set<Promise<void>>();
  /** How many events may be written now. */
  #allowance = FIRST_FEW;
  #refill: NodeJS.Timeout | undefined;
  #stopping = false;

  /** `dropped` is called for an event that is dropped because its namespace has too many. */
  constructor(client: Pick<Client, "create">, instance: string, dropped: () => void = () => {}) {
    this.#client = client;
    this.#instance = instance;
    this.#dropped = dropped;
  }

  /** Queues an event. An event that is already queued is not queued again. */
  record({ metadata }: SecretBinding, happening: EventMessage): void {
    this.recordOn({ apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", metadata }, happening);
  }

  /** Like `record`, for an object that is not a binding. */
  recordOn({ apiVersion, kind, metadata }: Regarding, happening: EventMessage): void {
    const { name, namespace, uid, resourceVersion } = metadata;
    // Only this is kept until the event is written.
    const regarding = { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion } };
    const note = Buffer.from(happening.note).subarray(0, MAX_NOTE_BYTES).toString();
    const key = [happening.reason, note].join();
    const write = () => this.#write(regarding, { ...happening, note });
    if (this.#backlog[happening.type].add(metadata, key, write)) this.#dropped();
    this.#pump();
  }

  /** Writes the queued events as fast as possible. Drops events that are still queued after that time. */
  async stop(withinMs = STOP_WITHIN_MS): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#refill);
    const enough = setTimeout(() => {
      for (const backlog of Object.values(this.#backlog)) backlog.clear();
    }, withinMs);
    this.#pump();
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
    clearTimeout(enough);
  }

  #pump(): void {
    while (this.#underWay.size < AT_ONCE && (this.#allowance > 0 || this.#stopping)) {
      const write = this.#next();
      if (write === undefined) return;
      this.#spend();
      const work = write()
        .catch(() => {})
        .finally(() => {
          this.#underWay.delete(work);
          this.#pump();
        });
      this.#underWay.add(work);
    }
  }

  #next(): Write | undefined {
    const { Warning, Normal } = this.#backlog;
    const warning = this.#warnings < MAX_WARNINGS ? Warning.next() : undefined;
    this.#warnings = warning === undefined ? 0 : this.#warnings + 1;
    return warning ?? Normal.next() ?? Warning.next();
  }

  #spend(): void {
    this.#allowance--;
    if (this.#stopping) return;
    this.#refill ??= setInterval(() => {
      this.#allowance++;
      if (this.#allowance >= FIRST_FEW) {
        clearInterval(this.#refill);
        this.#refill = undefined;
      }
      this.#pump();
    }, 1_000 / PER_SECOND).unref();
  }

  async #write({ apiVersion, kind, metadata }: Regarding, { type, reason, action, note }: EventMessage): Promise<void> {
    const { name, namespace, uid, resourceVersion } = metadata;
    // The API server accepts events about cluster-scoped objects only in this namespace.
    const home = namespace ?? "default";
    await this.#client.create(CONTROLLER, EVENTS, home, {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name: `${name.slice(0, 230)}.${randomBytes(8).toString("hex")}`, namespace: home },
      eventTime: new Date().toISOString().replace(/Z$/, "000Z"),
      reportingController: "inlay.dev/controller",
      reportingInstance: this.#instance,
      action,
      reason,
      regarding: { apiVersion, kind, namespace, name, uid, resourceVersion },
      note,
      type,
    });
  }
}
