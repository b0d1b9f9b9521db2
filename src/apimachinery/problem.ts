/**
 * Everything that can stand in the way of a binding, as one catalogue: what comes in is a cause, what goes out is a
 * reason in CamelCase, a message that says what to do, and whether time alone may heal it. A message never carries a
 * value of a Secret nor the API server's own words, which quote values.
 */

/**
 * How a problem ends. `edit`: only by changing the binding. `event`: by a change that is watched, so nothing is
 * retried. By something that can't be watched, so it is tried again: `soon`, within seconds, where somebody is waiting for
 * it, such as for a right; `late`, within half a minute, for rules that seldom change.
 */
export type Healing = "edit" | "event" | "soon" | "late";

/** Every reason that a condition, an event or a log line may carry, and how it heals. */
export const healingOf = {
  InvalidBinding: "edit",
  InvalidPath: "edit",
  ForbiddenPath: "edit",
  ForbiddenKind: "edit",
  ForbiddenNamespace: "edit",
  NotAcknowledged: "edit",
  OutOfScope: "edit",
  InvalidTemplate: "edit",
  SourceNotFound: "event",
  NotGranted: "event",
  GrantWithdrawn: "event",
  KeyNotFound: "event",
  NotUtf8: "event",
  InvalidValue: "event",
  SourcesDiffer: "event",
  ServiceAccountNotFound: "event",
  TargetNotFound: "event",
  ElementNotFound: "event",
  ElementNotUnique: "event",
  KindNotFound: "soon",
  UnknownField: "late",
  TypeMismatch: "late",
  Conflict: "event",
  Contended: "late",
  Forbidden: "soon",
  ImpersonationForbidden: "soon",
  NoDigestKey: "soon",
  Rejected: "late",
  Immutable: "late",
  ReleaseBlocked: "edit",
  ReleaseAbandoned: "edit",
  Unavailable: "soon",
} as const satisfies Record<string, Healing>;

export type Reason = keyof typeof healingOf;

/** A reason why something could not be done, safe to print anywhere. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly reason: Reason;
  readonly healing: Healing;
  constructor(reason: Reason, message: string, healing: Healing = healingOf[reason]) {
    super(message);
    this.reason = reason;
    this.healing = healing;
  }
}

/** What keeps an object from being made only if it was named: selected with others, it was not meant, and is left alone. */
export class NotMeant extends Problem {}

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
