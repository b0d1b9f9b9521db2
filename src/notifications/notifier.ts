/** Passes each notification to the configured receivers. Returns at once, without waiting for a receiver. */
import type { ReceiverRules } from "../api/notification-rules.ts";
import { setNewest } from "../apimachinery/newest.ts";
import type { Client } from "../kube/client.ts";
import type { Log } from "../observability/log.ts";
import type { Notification } from "./notification.ts";
import { post } from "./post.ts";
import { type DeliveryResult, Receiver } from "./receiver.ts";
import { receiverUrl } from "./receiver-url.ts";

/** How many ids are remembered, so that each notification is sent once. */
const MAX_KNOWN = 10_000;
const RESULTS: readonly DeliveryResult[] = ["sent", "rejected", "failed", "dropped"];
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
  readonly #known = new Map<string, true>();

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
    setNewest(this.#known, id, true, MAX_KNOWN);
    for (const receiver of this.#receivers) receiver.offer(notification);
  }

  /** Sends the queued notifications within that time. */
  async stop(withinMs = STOP_WITHIN_MS): Promise<void> {
    await Promise.all(this.#receivers.map((each) => each.stop(withinMs)));
  }
}
