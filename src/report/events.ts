/**
 * What happened to a binding comes in, Kubernetes events for `kubectl describe` go out, in the background: a reconcile
 * never waits for one, and an event that can't be written is dropped.
 */
import { randomBytes } from "node:crypto";
import type { Client } from "../kube/client.ts";
import { CONTROLLER } from "../kube/identity.ts";
import type { SecretBinding } from "../model/binding.ts";
import type { Resource } from "../model/kube-object.ts";

const EVENTS: Resource = {
  group: "events.k8s.io",
  version: "v1",
  kind: "Event",
  plural: "events",
  namespaced: true,
  hasStatus: false,
};

/** The API server takes 1024 bytes of UTF-8 as an event's note; some are spared for a character that is cut. */
const LONGEST_NOTE_BYTES = 1000;
const AT_ONCE = 2;
const LONGEST_BACKLOG = 1000;
/** How long the end waits for events that are not under way yet. */
const STOP_WITHIN_MS = 5_000;

export interface Happening {
  type: "Normal" | "Warning";
  reason: string;
  /** What the controller was doing, such as Sync or Release. */
  action: string;
  note: string;
}

export class EventRecorder {
  readonly #client: Client;
  readonly #instance: string;
  readonly #backlog: (() => Promise<void>)[] = [];
  readonly #underWay = new Set<Promise<void>>();

  constructor(client: Client, instance: string) {
    this.#client = client;
    this.#instance = instance;
  }

  record(binding: SecretBinding, happening: Happening): void {
    if (this.#backlog.length >= LONGEST_BACKLOG) return;
    this.#backlog.push(() => this.#write(binding, happening));
    this.#pump();
  }

  /** Waits for what was recorded to be written. What is not even under way after this time is dropped. */
  async stop(withinMs = STOP_WITHIN_MS): Promise<void> {
    const enough = setTimeout(() => this.#backlog.splice(0), withinMs);
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
    clearTimeout(enough);
  }

  #pump(): void {
    while (this.#underWay.size < AT_ONCE) {
      const next = this.#backlog.shift();
      if (next === undefined) return;
      const work = next()
        .catch(() => {})
        .finally(() => {
          this.#underWay.delete(work);
          this.#pump();
        });
      this.#underWay.add(work);
    }
  }

  async #write(binding: SecretBinding, { type, reason, action, note }: Happening): Promise<void> {
    const { name, namespace = "", uid, resourceVersion } = binding.metadata;
    await this.#client.create(CONTROLLER, EVENTS, namespace, {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name: `${name.slice(0, 230)}.${randomBytes(8).toString("hex")}`, namespace },
      eventTime: new Date().toISOString().replace(/Z$/, "000Z"),
      reportingController: "inlay.dev/controller",
      reportingInstance: this.#instance,
      action,
      reason,
      regarding: { apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", namespace, name, uid, resourceVersion },
      note: Buffer.from(note).subarray(0, LONGEST_NOTE_BYTES).toString(),
      type,
    });
  }
}
