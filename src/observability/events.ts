/**
 * What happened to a binding comes in, Kubernetes events for `kubectl describe` go out, in the background: a reconcile
 * never waits for one, and an event that can't be written is dropped.
 */
import { randomBytes } from "node:crypto";
import type { SecretBinding } from "../api/binding.ts";
import type { EventReason } from "../apimachinery/reasons.ts";
import { EVENTS } from "../apimachinery/resources.ts";
import type { Client } from "../kube/client.ts";
import { CONTROLLER } from "../kube/identity.ts";
import { RoundRobinQueue } from "../workqueue/round-robin-queue.ts";

/** The API server takes 1024 bytes of UTF-8 as an event's note; some are spared for a character that is cut. */
const MAX_NOTE_BYTES = 1000;
const AT_ONCE = 2;
/** An event costs the API server a third of the write that it tells of. As many as client-go writes, later than those. */
const PER_SECOND = 20;
const FIRST_FEW = 30;
const MAX_BACKLOG_LENGTH = 1000;
/** How long the end waits for events that are not under way yet. */
const STOP_WITHIN_MS = 5_000;

export interface EventMessage {
  type: "Normal" | "Warning";
  reason: EventReason;
  /** What the controller was doing, such as Sync or Release. */
  action: string;
  note: string;
}

/** What an event is about. */
export interface Regarding {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string | undefined; uid: string; resourceVersion?: string | undefined };
}

export class EventRecorder {
  readonly #client: Pick<Client, "create">;
  readonly #instance: string;
  /** What waits to be written, by bindings. Nobody looks for a warning behind a thousand successes. */
  readonly #backlog = {
    Warning: new RoundRobinQueue<() => Promise<void>>(MAX_BACKLOG_LENGTH),
    Normal: new RoundRobinQueue<() => Promise<void>>(MAX_BACKLOG_LENGTH),
  };
  readonly #underWay = new Set<Promise<void>>();
  /** How many may be written now. */
  #allowance = FIRST_FEW;
  #refill: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(client: Pick<Client, "create">, instance: string) {
    this.#client = client;
    this.#instance = instance;
  }

  /** What waits to be told already is not told twice. */
  record({ metadata }: SecretBinding, happening: EventMessage): void {
    this.recordOn({ apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", metadata }, happening);
  }

  /** The same of an object that is no binding. */
  recordOn(regarding: Regarding, happening: EventMessage): void {
    const key = [happening.reason, happening.note].join();
    this.#backlog[happening.type].set(regarding.metadata.uid, key, () => this.#write(regarding, happening));
    this.#pump();
  }

  /** Waits for what was recorded to be written, as fast as it can be. What is not under way by then is dropped. */
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
      const { Warning, Normal } = this.#backlog;
      const write = Warning.next() ?? Normal.next();
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
    // The API server takes an event about an object of the cluster in this namespace alone.
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
      note: Buffer.from(note).subarray(0, MAX_NOTE_BYTES).toString(),
      type,
    });
  }
}
