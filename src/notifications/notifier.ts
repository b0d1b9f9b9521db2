/** Passes each notification to the configured receivers, which deliver in the background. Returns at once. */
import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import type { ReceiverRules, ReceiverType } from "../api/notification-rules.ts";
import { retryAfterMs } from "../apimachinery/duration.ts";
import { at } from "../apimachinery/fields.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import { BoundedMap } from "../apimachinery/maps.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SECRETS } from "../apimachinery/resources.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { attempt } from "../kube/access-error.ts";
import type { Client } from "../kube/client.ts";
import { getAsController } from "../kube/get.ts";
import { describeError, type Log } from "../observability/log.ts";
import { type Notification, NotificationText } from "./text.ts";

const DEADLINE_MS = 10_000;
/** The most of an answer that is read. Its content is not used. */
const MAX_ANSWER = 64 * 1024;

/** The result of a message. `retry`: a later attempt may succeed. */
export type PostResult =
  | { outcome: "sent" }
  | { outcome: "rejected"; why: string }
  | { outcome: "retry"; why: string; afterMs?: number };

/** Sends on a separate connection, and follows no redirects. Drops all error texts, which may contain the URL, a secret. */
export async function post(url: SecretValue<URL>, body: string, signal: AbortSignal): Promise<PostResult> {
  const agent = new Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    // Set explicitly, so that NODE_TLS_REJECT_UNAUTHORIZED in the environment has no effect.
    connect: { rejectUnauthorized: true, timeout: DEADLINE_MS },
  });
  const { promise: late, resolve } = Promise.withResolvers<PostResult>();
  const timer = setTimeout(() => resolve({ outcome: "retry", why: "no answer within 10 s" }), DEADLINE_MS);
  const onAbort = () => resolve({ outcome: "retry", why: "the controller is stopping" });
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([send(agent, url, body), late]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    // Also ends the request if it is still running.
    agent.destroy().catch(() => {});
  }
}

async function send(agent: Agent, url: SecretValue<URL>, body: string): Promise<PostResult> {
  try {
    const { origin, pathname, search } = url.reveal();
    const headers = { "content-type": "application/json", "user-agent": "inlay" };
    const answer = await agent.request({ origin, path: pathname + search, method: "POST", headers, body });
    // A failure while reading the rest of the answer does not matter.
    await answer.body.dump({ limit: MAX_ANSWER }).catch(() => {});
    return resultOf(answer.statusCode, answer.headers["retry-after"]);
  } catch (error) {
    const { code, name } = error as { code?: string; name?: string };
    return { outcome: "retry", why: `no connection (${code ?? name ?? "Error"})` };
  }
}

export function resultOf(status: number, retryAfter: unknown): PostResult {
  if (status >= 200 && status < 300) return { outcome: "sent" };
  const why = `the receiver answered with status ${status}`;
  if (status >= 300 && status < 400)
    return { outcome: "rejected", why: `${why}; redirects are not followed, so set the final URL` };
  if (status !== 408 && status !== 429 && status < 500) return { outcome: "rejected", why };
  const afterMs = retryAfterMs(retryAfter);
  return { outcome: "retry", why, ...(afterMs !== undefined && { afterMs }) };
}

/** Writes the JSON body of a message in the format of the receiver. */
export function bodyOf(type: ReceiverType, notifications: readonly Notification[], text: string): string {
  if (type === "Slack") return JSON.stringify({ text });
  return JSON.stringify(type === "Teams" ? cardOf(text) : plain(notifications, text));
}

/** The format of the Teams workflow "Post to a channel when a webhook request is received". */
function cardOf(text: string): object {
  const content = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.2",
    // Teams renders a line break within a block as a space.
    body: text.split("\n").map((line) => ({ type: "TextBlock", text: line, wrap: true })),
  };
  const attachment = { contentType: "application/vnd.microsoft.card.adaptive", contentUrl: null, content };
  return { type: "message", attachments: [attachment] };
}

function plain(notifications: readonly Notification[], text: string): object {
  const all = notifications.map(({ id: _, ...fields }) => fields);
  const [only, ...others] = all;
  if (others.length === 0) return { ...only, text };
  const count = (event: string) => all.filter((each) => each.event === event).length;
  const counts = { Restarted: count("Restarted"), RestartFailed: count("RestartFailed") };
  return { event: "Gathered", counts, notifications: all, text };
}

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

const RESULTS = ["sent", "rejected", "failed", "dropped"] as const;
/** The result of a delivery. `dropped`: too many were queued, or the controller stopped. `failed`: no attempt succeeded. */
type DeliveryResult = (typeof RESULTS)[number];

interface ReceiverServices {
  /** Returns the URL, or the reason why there is none. */
  url(): Promise<SecretValue<URL> | string>;
  post(url: SecretValue<URL>, body: string, signal: AbortSignal): Promise<PostResult>;
  delivered(result: DeliveryResult, count: number): void;
  log: Pick<Log, "warn" | "error">;
}

/** Delivers in order, at most one message a second; of too many for a chat, one combined message. A full queue drops the oldest. */
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

/**
 * Returns the URL, or the reason why there is none, without the URL. Reads it for each message, so that a rotation takes effect at once.
 */
export async function receiverUrl(
  client: Pick<Client, "get">,
  namespace: string,
  { url: { secret: name, key }, insecure }: Pick<ReceiverRules, "url" | "insecure">,
): Promise<SecretValue<URL> | string> {
  const found = await attempt(getAsController(client, { resource: SECRETS, namespace, name }));
  if (found instanceof Problem) return found.message;
  const place = `Secret ${namespace}/${name}`;
  const value = found === undefined ? undefined : at(found, "data", key);
  if (typeof value !== "string")
    return found === undefined ? `there is no ${place}; create it` : `${place} has no key ${key}; add it`;
  const url = URL.parse(Buffer.from(value, "base64").toString().trim());
  const isPlain = url?.protocol === "http:";
  if (url === null || (url.protocol !== "https:" && !isPlain))
    return `key ${key} of ${place} is not an https URL; write one that begins with https://`;
  if (isPlain && !insecure)
    return `key ${key} of ${place} is an http URL; set insecure: true on the receiver to allow that`;
  if (url.username !== "" || url.password !== "")
    return `key ${key} of ${place} contains a user or password; remove them, because Inlay does not send them`;
  return new SecretValue(url);
}

/** How many ids are remembered, so that each notification is sent once. */
const MAX_KNOWN = 10_000;
/** How long stopping waits for receivers. */
const STOP_WITHIN_MS = 3_000;

interface NotifierServices {
  client: Pick<Client, "get">;
  /** The namespace of the Secrets with URLs. */
  ownNamespace: string;
  notified(receiver: string, result: DeliveryResult, count: number): void;
  log: Pick<Log, "warn" | "error">;
}

export class Notifier {
  readonly #receivers: readonly Receiver[];
  readonly #known = new BoundedMap<string, true>(MAX_KNOWN);

  constructor(rules: readonly ReceiverRules[], { client, ownNamespace, notified, log }: NotifierServices) {
    this.#receivers = rules.map((each) => {
      const delivered = (result: DeliveryResult, count: number) => notified(each.name, result, count);
      // Creates the time series before the first notification.
      for (const result of RESULTS) delivered(result, 0);
      return new Receiver(each, { url: () => receiverUrl(client, ownNamespace, each), post, delivered, log });
    });
  }

  notify(notification: Notification): void {
    const { id } = notification;
    if (this.#receivers.length === 0 || this.#known.has(id)) return;
    this.#known.set(id, true);
    for (const receiver of this.#receivers) receiver.offer(notification);
  }

  /** Sends the queued notifications within that time. */
  async stop(withinMs = STOP_WITHIN_MS): Promise<void> {
    await Promise.all(this.#receivers.map((each) => each.stop(withinMs)));
  }
}
