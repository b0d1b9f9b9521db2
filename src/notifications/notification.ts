/** The content of a notification about a workload. Types only. No field contains a value of a source. */
import type { NotifiedEvent } from "../api/notification-rules.ts";

export interface Notification {
  /** Two bindings that observe the same restart give it the same id. The id is not sent. */
  readonly id: string;
  readonly event: NotifiedEvent;
  /** The reason of the Kubernetes event or of the binding's condition, such as RolloutFailed or Forbidden. */
  readonly reason: string;
  readonly message: string;
  /** In RFC 3339. */
  readonly time: string;
  readonly workload: {
    readonly apiVersion: string;
    readonly kind: string;
    /** Empty for a cluster-scoped workload. */
    readonly namespace: string;
    readonly name: string;
  };
  readonly binding: { readonly namespace: string; readonly name: string };
  /** The names of the changed values, such as `bucket/accessKeyID`. */
  readonly keys: readonly string[];
}
