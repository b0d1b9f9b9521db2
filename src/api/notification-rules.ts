/** Which receivers the installation notifies when workloads restart or fail to. Types, and the words that the configuration may use. */

export const NOTIFIED_EVENTS = ["Restarted", "RestartFailed"] as const;
export type NotifiedEvent = (typeof NOTIFIED_EVENTS)[number];

export const RECEIVER_TYPES = ["Slack", "Teams", "Webhook"] as const;
export type ReceiverType = (typeof RECEIVER_TYPES)[number];

export interface ReceiverRules {
  /** In log lines and metrics. */
  readonly name: string;
  readonly type: ReceiverType;
  /** The key of a Secret in the controller's own namespace that holds the URL. */
  readonly url: { readonly secret: string; readonly key: string };
  /** The URL may be plain http. */
  readonly insecure: boolean;
  readonly events: readonly NotifiedEvent[];
  /** Of workloads. Globs. */
  readonly namespaces: readonly string[];
  /** What a message says; without it, one sentence of ours. */
  readonly template?: string;
}
