/**
 * The catalogue of everything that can stop a binding. Each problem has a reason in CamelCase, a message that says what
 * to do, and a retry policy. A message never contains a value of a Secret, nor the API server's own text, which quotes
 * values.
 */

/**
 * When a problem is retried. `Terminal`: only a change of the binding helps. `OnChange`: a change of a watched object
 * helps, so Inlay waits for it. The others depend on what Inlay can't watch: `Backoff` retries within seconds, for what
 * users wait for, such as a permission; `Slow` retries every 30 seconds, for rules that seldom change; `Slowing` retries
 * within seconds at first and then as seldom as `Slow`, for a webhook that may only restart.
 */
export type RetryPolicy = "Terminal" | "OnChange" | "Backoff" | "Slowing" | "Slow";

/** Every reason of a condition, an event or a log line, with its retry policy. */
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
  TooLarge: "OnChange",
  LimitExceeded: "OnChange",
  RestartsTooFrequent: "OnChange",
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
  // The polls of Vault and the watch of VaultConnections requeue the binding when something changes.
  ConnectionNotFound: "OnChange",
  ConnectionNotReady: "OnChange",
  ForbiddenAddress: "OnChange",
  Unreachable: "OnChange",
  VaultDenied: "OnChange",
  VaultSealed: "OnChange",
  VaultThrottled: "OnChange",
  VaultUnavailable: "OnChange",
  VaultUntrusted: "OnChange",
  Protected: "Slow",
  Rejected: "Slow",
  Reverted: "Slow",
  ConversionFailed: "Slowing",
  UndecodableObject: "Slow",
  WebhookFailed: "Slowing",
  Immutable: "Slow",
  ReleaseBlocked: "Slow",
  ReleaseAbandoned: "Terminal",
  Unavailable: "Backoff",
} as const satisfies Record<string, RetryPolicy>;

export type Reason = keyof typeof retryPolicies;

/** The reason and message of a failure. Safe to print anywhere. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly reason: Reason;
  readonly retryPolicy: RetryPolicy;
  /** Set if a server says how long to wait before the next request, in ms. */
  readonly retryAfterMs?: number | undefined;
  constructor(reason: Reason, message: string, retryPolicy: RetryPolicy = retryPolicies[reason]) {
    super(message);
    this.reason = reason;
    this.retryPolicy = retryPolicy;
  }

  /** The message for a part of a status, without commands that the conditions have for all problems of the binding. */
  get brief(): string {
    return this.message;
  }

  /** The same problem with text around its message. */
  within(before: string, after = "", retryPolicy = this.retryPolicy): Problem {
    return new Problem(this.reason, `${before}${this.message}${after}`, retryPolicy);
  }
}

/** The result of the work, or the Problem that it throws. */
export function attemptSync<T>(work: () => T): T | Problem {
  try {
    return work();
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}

/**
 * Prevents the creation of a target that the binding names, but excludes a selected object: the selection did not mean
 * it.
 */
export class UnintendedTarget extends Problem {}

/** What happens to fields whose value is missing. */
export interface MissingPolicy {
  readonly onMissing: "Wait" | "Remove";
  /** The binding is ready without it. */
  readonly optional: boolean;
}

type MissingReason = "SourceNotFound" | "KeyNotFound" | "NotGranted" | "GrantWithdrawn";

/** A value is missing, or not available to this binding: its source, or the key or field in the source. */
export class MissingValue extends Problem {
  declare readonly reason: MissingReason;
  readonly policy: MissingPolicy;
  constructor(reason: MissingReason, message: string, policy: MissingPolicy) {
    super(reason, message);
    this.policy = policy;
  }

  override within(before: string, after = ""): MissingValue {
    return new MissingValue(this.reason, `${before}${this.message}${after}`, this.policy);
  }
}
