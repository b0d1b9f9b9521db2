/** What happened to a workload, as receivers learn of it. Types only. No field holds a value of a source. */
import type { NotifiedEvent } from "../api/notification-rules.ts";

export interface Notification {
  /** Two bindings that see one and the same restart give it the same id. Receivers don't get it. */
  readonly id: string;
  readonly event: NotifiedEvent;
  /** As an event of Kubernetes or a condition of the binding has it, such as RolloutFailed or Forbidden. */
  readonly reason: string;
  readonly message: string;
  /** In RFC 3339. */
  readonly time: string;
  readonly workload: {
    readonly apiVersion: string;
    readonly kind: string;
    /** Empty for one of the cluster. */
    readonly namespace: string;
    readonly name: string;
  };
  readonly binding: { readonly namespace: string; readonly name: string };
  /** What changed, by name, such as `bucket/accessKeyID`. */
  readonly keys: readonly string[];
}
