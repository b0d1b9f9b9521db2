/**
 * Everything that can stand in the way of a binding, as one catalogue: what comes in is a cause, what goes out is a
 * reason in CamelCase, a message that says what to do, and when it is retried. A message never carries a
 * value of a Secret nor the API server's own words, which quote values.
 */

/**
 * When a problem is retried. `Terminal`: only a change of the binding helps. `OnChange`: a change of something that is watched
 * helps, so nothing is retried before that. The others wait for something that can't be watched: `Backoff` retries within
 * seconds, where somebody waits for it, such as a permission; `Slow` retries every half a minute, for rules that seldom change.
 */
export type RetryPolicy = "Terminal" | "OnChange" | "Backoff" | "Slow";

/** Every reason that a condition, an event or a log line may carry, and when it is retried. */
export const retryPolicies = {
  InvalidBinding: "Terminal",
  InvalidPath: "Terminal",
  ForbiddenPath: "Terminal",
  ForbiddenKind: "Terminal",
  ForbiddenNamespace: "Terminal",
  NotAcknowledged: "Terminal",
  OutOfScope: "Terminal",
  InvalidComposition: "Terminal",
  InvalidTemplate: "Terminal",
  SourceNotFound: "OnChange",
  NotGranted: "OnChange",
  GrantWithdrawn: "OnChange",
  KeyNotFound: "OnChange",
  NotUtf8: "OnChange",
  InvalidValue: "OnChange",
  TooDeep: "OnChange",
  SourceAnnotationMismatch: "OnChange",
  ServiceAccountNotFound: "OnChange",
  TargetNotFound: "OnChange",
  WorkloadNotFound: "OnChange",
  RolloutPending: "OnChange",
  ElementNotFound: "OnChange",
  ElementNotUnique: "OnChange",
  FieldNotFound: "OnChange",
  NotSupported: "OnChange",
  OutOfReach: "OnChange",
  NameTaken: "OnChange",
  BindingNotMade: "Slow",
  KindNotFound: "Backoff",
  UnknownField: "Slow",
  TypeMismatch: "Slow",
  VersionDropsFields: "Slow",
  Conflict: "OnChange",
  Contended: "Slow",
  Forbidden: "Backoff",
  ImpersonationForbidden: "Backoff",
  TooManyWatches: "OnChange",
  NoDigestKey: "Backoff",
  // A poll goes on by itself, and a VaultConnection is watched: both call when it is different.
  ConnectionNotFound: "OnChange",
  ConnectionNotReady: "OnChange",
  ForbiddenAddress: "OnChange",
  Unreachable: "OnChange",
  VaultDenied: "OnChange",
  VaultSealed: "OnChange",
  VaultThrottled: "OnChange",
  VaultUnavailable: "OnChange",
  VaultUntrusted: "OnChange",
  Rejected: "Slow",
  Immutable: "Slow",
  ReleaseBlocked: "Terminal",
  ReleaseAbandoned: "Terminal",
  Unavailable: "Backoff",
} as const satisfies Record<string, RetryPolicy>;

export type Reason = keyof typeof retryPolicies;

/** A reason why something could not be done, safe to print anywhere. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly reason: Reason;
  readonly retryPolicy: RetryPolicy;
  /** Set where a server says how long to wait before the next request, in ms. */
  readonly retryAfterMs?: number | undefined;
  constructor(reason: Reason, message: string, retryPolicy: RetryPolicy = retryPolicies[reason]) {
    super(message);
    this.reason = reason;
    this.retryPolicy = retryPolicy;
  }
}

/** What the work returns, or the Problem that it throws. */
export function attemptSync<T>(work: () => T): T | Problem {
  try {
    return work();
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}

/** What keeps an object from being made only if it was named: selected with others, it was not meant, and is left alone. */
export class UnintendedTarget extends Problem {}

/** What a source says is to become of the fields that need what is not there. */
export interface MissingPolicy {
  readonly onMissing: "Wait" | "Remove";
  /** The binding is as it should be without it. */
  readonly optional: boolean;
}

type MissingReason = "SourceNotFound" | "KeyNotFound" | "NotGranted" | "GrantWithdrawn";

/** A value that is not there, or not there for this binding: its source, or the key or field in it. */
export class MissingValue extends Problem {
  declare readonly reason: MissingReason;
  readonly policy: MissingPolicy;
  constructor(reason: MissingReason, message: string, policy: MissingPolicy) {
    super(reason, message);
    this.policy = policy;
  }
}
