/**
 * The catalogue of everything that can stop a binding. Each problem has a reason in CamelCase, a message that says what
 * to do, and a retry policy; its reason decides who fixes it. A message never contains a value of a Secret, nor the API
 * server's own text, which quotes values.
 */

/**
 * When a problem is retried. `Terminal`: only a change of the binding helps. `OnChange`: a change of a watched object
 * helps, so Inlay waits for it. The others depend on what Inlay can't watch: `Backoff` retries within seconds, for what
 * users wait for, such as a permission; `Slow` retries every 30 seconds, for rules that seldom change; `Slowing` retries
 * within seconds at first and then as seldom as `Slow`, for a webhook that may only restart.
 */
export type RetryPolicy = "Terminal" | "OnChange" | "Backoff" | "Slowing" | "Slow";

/**
 * Who ends a problem. `Edit`: waiting does not help, only a change of the object, a CRD or the configuration; the object is Stalled at
 * once. `User`: a user or another tool may be about to do what is missing; the object is Stalled if the reason stays for a minute.
 * `Itself`: the object is Reconciling, however long it takes. When Inlay retries does not depend on it.
 */
export type FixedBy = "Edit" | "User" | "Itself";

/** Every reason of a problem, with its retry policy and who fixes it. */
export const catalogue = {
  InvalidBinding: { retry: "Terminal", fixedBy: "Edit" },
  InvalidPath: { retry: "Terminal", fixedBy: "Edit" },
  ForbiddenPath: { retry: "Terminal", fixedBy: "Edit" },
  ForbiddenKind: { retry: "Terminal", fixedBy: "Edit" },
  ForbiddenNamespace: { retry: "Terminal", fixedBy: "Edit" },
  NotAcknowledged: { retry: "Terminal", fixedBy: "Edit" },
  OutOfScope: { retry: "Terminal", fixedBy: "Edit" },
  InvalidComposition: { retry: "Terminal", fixedBy: "Edit" },
  InvalidTemplate: { retry: "Terminal", fixedBy: "Edit" },
  SourceNotFound: { retry: "OnChange", fixedBy: "User" },
  NotGranted: { retry: "OnChange", fixedBy: "User" },
  GrantWithdrawn: { retry: "OnChange", fixedBy: "User" },
  KeyNotFound: { retry: "OnChange", fixedBy: "User" },
  NotUtf8: { retry: "OnChange", fixedBy: "User" },
  InvalidValue: { retry: "OnChange", fixedBy: "Edit" },
  TooDeep: { retry: "OnChange", fixedBy: "User" },
  TooLarge: { retry: "OnChange", fixedBy: "User" },
  LimitExceeded: { retry: "OnChange", fixedBy: "User" },
  RestartsTooFrequent: { retry: "OnChange", fixedBy: "User" },
  SourceAnnotationMismatch: { retry: "OnChange", fixedBy: "User" },
  ServiceAccountNotFound: { retry: "OnChange", fixedBy: "User" },
  TargetNotFound: { retry: "OnChange", fixedBy: "User" },
  WorkloadNotFound: { retry: "OnChange", fixedBy: "User" },
  RolloutPending: { retry: "OnChange", fixedBy: "Itself" },
  ElementNotFound: { retry: "OnChange", fixedBy: "User" },
  ElementNotUnique: { retry: "OnChange", fixedBy: "User" },
  FieldNotFound: { retry: "OnChange", fixedBy: "User" },
  NotSupported: { retry: "OnChange", fixedBy: "User" },
  OutOfReach: { retry: "OnChange", fixedBy: "User" },
  NameTaken: { retry: "OnChange", fixedBy: "User" },
  BindingNotMade: { retry: "Slow", fixedBy: "User" },
  KindNotFound: { retry: "Backoff", fixedBy: "User" },
  UnknownField: { retry: "Slow", fixedBy: "Edit" },
  TypeMismatch: { retry: "Slow", fixedBy: "Edit" },
  VersionDropsFields: { retry: "Slow", fixedBy: "Edit" },
  Conflict: { retry: "OnChange", fixedBy: "User" },
  Contended: { retry: "Slow", fixedBy: "User" },
  Forbidden: { retry: "Backoff", fixedBy: "User" },
  ImpersonationForbidden: { retry: "Backoff", fixedBy: "User" },
  TooManyWatches: { retry: "OnChange", fixedBy: "User" },
  NoDigestKey: { retry: "Backoff", fixedBy: "User" },
  // The polls of Vault and the watch of VaultConnections requeue the binding when something changes.
  ConnectionNotFound: { retry: "OnChange", fixedBy: "User" },
  ConnectionNotReady: { retry: "OnChange", fixedBy: "User" },
  ForbiddenAddress: { retry: "OnChange", fixedBy: "Edit" },
  Unreachable: { retry: "OnChange", fixedBy: "Itself" },
  VaultDenied: { retry: "OnChange", fixedBy: "User" },
  VaultSealed: { retry: "OnChange", fixedBy: "Itself" },
  VaultThrottled: { retry: "OnChange", fixedBy: "Itself" },
  VaultUnavailable: { retry: "OnChange", fixedBy: "Itself" },
  VaultUntrusted: { retry: "OnChange", fixedBy: "User" },
  Protected: { retry: "Slow", fixedBy: "User" },
  Rejected: { retry: "Slow", fixedBy: "User" },
  Reverted: { retry: "Slow", fixedBy: "User" },
  ConversionFailed: { retry: "Slowing", fixedBy: "Itself" },
  UndecodableObject: { retry: "Slow", fixedBy: "User" },
  WebhookFailed: { retry: "Slowing", fixedBy: "Itself" },
  Immutable: { retry: "Slow", fixedBy: "Edit" },
  ReleaseBlocked: { retry: "Slow", fixedBy: "User" },
  ReleaseAbandoned: { retry: "Terminal", fixedBy: "User" },
  Unavailable: { retry: "Backoff", fixedBy: "Itself" },
} as const satisfies Record<string, { retry: RetryPolicy; fixedBy: FixedBy }>;

export type Reason = keyof typeof catalogue;

/** The reason and message of a failure. Safe to print anywhere. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly reason: Reason;
  readonly retryPolicy: RetryPolicy;
  /** Set if a server says how long to wait before the next request, in ms. */
  readonly retryAfterMs?: number | undefined;
  constructor(reason: Reason, message: string, retryPolicy: RetryPolicy = catalogue[reason].retry) {
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
