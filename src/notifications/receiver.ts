/**
 * Delivers notifications to one receiver in the background, in order: at most one message a second, with retries, and one combined message
 * if too many are queued for a chat. The queue is bounded and drops the oldest.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ReceiverRules } from "../api/notification-rules.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import type { SecretValue } from "../apimachinery/secret-value.ts";
import { describeError, type Log } from "../observability/log.ts";
import { bodyOf } from "./body.ts";
import type { Notification } from "./notification.ts";
import type { PostResult } from "./post.ts";
import { NotificationText } from "./text.ts";

/** Slack accepts one message a second. */
const EVERY_MS = 1_000;
/** If more than these are queued, they are combined into one message. */
const MAX_SINGLE = 20;
const MAX_WAITING = 1_000;
const BACKOFF_MS = { first: 1_000, most: 30_000 };
/** With these pauses, the attempts take a little more than five minutes. */
const MAX_ATTEMPTS = 15;
/** The longest Retry-After that is respected. */
const MAX_RETRY_AFTER_MS = 120_000;

/** The result of a delivery. `dropped`: too many were queued, or the controller stopped. `failed`: no attempt succeeded. */
export type DeliveryResult = "sent" | "rejected" | "failed" | "dropped";

export interface ReceiverServices {
  /** Returns the URL, or the reason why there is none. */
  url(): Promise<SecretValue<URL> | string>;
  post(url: SecretValue<URL>, body: string, signal: AbortSignal): Promise<PostResult>;
  delivered(result: DeliveryResult, count: number): void;
  log: Pick<Log, "warn" | "error">;
}

export class Receiver {
  readonly #rules: ReceiverRules;
  readonly #services: ReceiverServices;
  readonly #text: NotificationText;
  readonly #isNamespace: (name: string) => boolean;
  readonly #waiting: Notification[] = [];
  /** Ends pauses. */
  readonly #stopping = new AbortController();
  /** Ends requests. */
  readonly #stopped = new AbortController();
  /** Nothing is sent before it resolves. */
  #pause: Promise<unknown> = Promise.resolve();
  #running: Promise<void> | undefined;
  /** A log line has reported dropped notifications, and the queue has not been empty since. */
  #isDropping = false;

  constructor(rules: ReceiverRules, services: ReceiverServices) {
    this.#rules = rules;
    this.#services = services;
    this.#text = new NotificationText(rules.type, rules.template);
    this.#isNamespace = nameMatcher(rules.namespaces);
  }

  /** Queues it if it is for this receiver. */
  offer(notification: Notification): void {
    const { events } = this.#rules;
    if (!events.includes(notification.event) || !this.#isNamespace(notification.workload.namespace)) return;
    if (this.#stopping.signal.aborted) return void this.#services.delivered("dropped", 1);
    this.#waiting.push(notification);
    if (this.#waiting.length > MAX_WAITING) this.#drop();
    this.#running ??= this.#run();
  }

  /** Sends the queued notifications in one message, without retries. Drops what is not sent in time. */
  async stop(withinMs: number): Promise<void> {
    this.#stopping.abort();
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      this.#stopped.abort();
      resolve();
    }, withinMs);
    await Promise.race([this.#running, late]);
    clearTimeout(timer);
  }

  #drop(): void {
    this.#waiting.shift();
    this.#services.delivered("dropped", 1);
    if (this.#isDropping) return;
    this.#isDropping = true;
    const { name: receiver } = this.#rules;
    this.#services.log.warn({ receiver }, `more than ${MAX_WAITING} notifications are queued; dropping the oldest`);
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      await this.#pause;
      const isMany = this.#waiting.length > MAX_SINGLE || this.#stopping.signal.aborted;
      const taken = this.#waiting.splice(0, isMany ? MAX_WAITING : 1);
      if (this.#waiting.length === 0) this.#isDropping = false;
      const result = await this.#deliver(taken).catch((error): DeliveryResult => {
        this.#services.log.error({ receiver: this.#rules.name, error: describeError(error) }, "notification failed");
        return "failed";
      });
      this.#services.delivered(result, taken.length);
      this.#pause = this.#sleep(EVERY_MS);
    }
    this.#running = undefined;
  }

  async #deliver(notifications: readonly Notification[]): Promise<DeliveryResult> {
    const { log, post, url } = this.#services;
    const { name: receiver, type } = this.#rules;
    const body = bodyOf(type, notifications, this.#text.of(notifications));
    const about = { receiver, notifications: notifications.length };
    for (let attempt = 1, backoff = BACKOFF_MS.first; ; attempt++) {
      const to = await url();
      const result =
        typeof to === "string" ? ({ outcome: "retry", why: to } as const) : await post(to, body, this.#stopped.signal);
      if (result.outcome === "sent") return "sent";
      const { why } = result;
      if (result.outcome === "rejected") {
        log.error({ ...about, why }, "the receiver rejected the notification; dropping it");
        return "rejected";
      }
      if (this.#stopping.signal.aborted) {
        log.warn({ ...about, why }, "notification not sent before the controller stopped; dropping it");
        return "dropped";
      }
      if (attempt === MAX_ATTEMPTS) {
        log.error({ ...about, why }, "notification not sent; dropping it");
        return "failed";
      }
      if (attempt === 1) log.warn({ ...about, why }, "notification not sent; retrying with backoff");
      const asked = "afterMs" in result ? Math.min(result.afterMs ?? 0, MAX_RETRY_AFTER_MS) : 0;
      await this.#sleep(Math.max(asked, backoff));
      backoff = Math.min(backoff * 2, BACKOFF_MS.most);
    }
  }

  /** Ends early when the receiver stops. */
  async #sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stopping.signal }).catch(() => {});
  }
}
