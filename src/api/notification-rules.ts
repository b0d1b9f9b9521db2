/** The types and words of the configuration of notifications: receivers of restarts, and of restarts that failed. */

export const NOTIFIED_EVENTS = ["Restarted", "RestartFailed"] as const;
export type NotifiedEvent = (typeof NOTIFIED_EVENTS)[number];

export const RECEIVER_TYPES = ["Slack", "Teams", "Webhook"] as const;
export type ReceiverType = (typeof RECEIVER_TYPES)[number];

export interface ReceiverRules {
  /** Used in log lines and metrics. */
  readonly name: string;
  readonly type: ReceiverType;
  /** The key of a Secret in the controller's own namespace that contains the URL. */
  readonly url: { readonly secret: string; readonly key: string };
  /** The URL may be plain http. */
  readonly insecure: boolean;
  readonly events: readonly NotifiedEvent[];
  /** Globs for the namespaces of the workloads. */
  readonly namespaces: readonly string[];
  /** The text of a message. Without it, Inlay sends one standard sentence. */
  readonly template?: string;
}
