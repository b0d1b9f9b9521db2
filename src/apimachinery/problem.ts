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

/** What a message is composed of. */
export interface ProblemParts {
  /** Where, from the outside in: paths such as `spec.targets[0]`, or the names of objects. */
  readonly at?: readonly string[];
  readonly what: string;
  /** What to do. Before a `command`, it ends with what the command does, such as `create it`. */
  readonly fix?: string | undefined;
  /** A shell command to paste. */
  readonly command?: string | undefined;
  /** The name of the source in the binding that the problem is about. */
  readonly source?: string | undefined;
  /** What follows the command in the message. */
  readonly note?: string | undefined;
}

/** The parts of a failure. Safe to print anywhere. Code decides by the parts, and never by the message, which is for people. */
export class Problem extends Error implements ProblemParts {
  override readonly name = "Problem";
  readonly reason: Reason;
  readonly at: readonly string[];
  readonly what: string;
  readonly fix: string | undefined;
  readonly command: string | undefined;
  readonly note: string | undefined;
  readonly source: string | undefined;
  readonly retryPolicy: RetryPolicy;
  /** The other problems that the same check found. */
  readonly others: readonly Problem[] = [];
  /** Set if a server says how long to wait before the next request, in ms. */
  readonly retryAfterMs?: number | undefined;
  constructor(reason: Reason, parts: string | ProblemParts, retryPolicy: RetryPolicy = catalogue[reason].retry) {
    super();
    const { at = [], what, fix, command, note, source } = typeof parts === "string" ? { what: parts } : parts;
    this.reason = reason;
    this.at = at;
    this.what = what;
    this.fix = fix;
    this.command = command;
    this.note = note;
    this.source = source;
    this.retryPolicy = retryPolicy;
  }

  /** The sentence: `spec.targets[0]: what is wrong; what to do with: command`. */
  override get message(): string {
    return sentenceOf(this);
  }

  /** The message for a part of a status, without commands that the conditions have for all problems of the binding. */
  get brief(): string {
    return this.message;
  }

  /** The same problem at a place that contains its own. */
  within(...at: readonly string[]): this {
    const { others } = this;
    return this.with({
      at: [...at, ...this.at],
      ...(others.length > 0 && { others: others.map((each) => each.within(...at)) }),
    });
  }

  /** The same problem with other parts. */
  with(parts: Partial<ProblemParts> & Partial<Pick<Problem, "retryPolicy" | "others">>): this {
    const copy = Object.create(Object.getPrototypeOf(this), Object.getOwnPropertyDescriptors(this));
    return Object.assign(copy, parts);
  }

  /** Whether both say the same. */
  isSame(other: Problem | undefined): boolean {
    return other !== undefined && this.reason === other.reason && this.message === other.message;
  }
}

/** A problem in the output of a command: the message, and the command apart from it, so that it can be copied. */
export interface Advice {
  reason: string;
  /** If there is a command, it ends with `with:`. */
  message: string;
  command?: string;
}

export function adviceOf(reason: string, parts: ProblemParts): Advice {
  const { command, note, ...rest } = parts;
  if (command === undefined) return { reason, message: sentenceOf(parts) };
  const also = note === undefined ? "" : ` (${note})`;
  return { reason, message: `${sentenceOf(rest)}${also} with:`, command };
}

export const reasonOf = (problem: Problem): Advice => adviceOf(problem.reason, problem);

/** The message of the parts. */
export function sentenceOf({ at = [], what, fix, command, note }: ProblemParts): string {
  return [
    ...at.map((place) => `${place}: `),
    what,
    fix === undefined ? "" : `; ${fix}`,
    command === undefined ? "" : ` with: ${command}`,
    note === undefined ? "" : `; ${note}`,
  ].join("");
}

/** The most problems that one check reports. */
export const MAX_PROBLEMS = 100;

/** Throws the first of the problems, which has the others. */
export function throwFirst(problems: readonly Problem[]): void {
  const [first, ...others] = problems.slice(0, MAX_PROBLEMS).flatMap(allIn).slice(0, MAX_PROBLEMS);
  if (first !== undefined) throw others.length === 0 ? first : first.with({ others });
}

/** The results of all parts, or all their problems, as `throwFirst` throws them. */
export function allOf<T extends readonly unknown[]>(...parts: { [K in keyof T]: () => T[K] }): T {
  return eachOf(parts, (part) => (part as () => unknown)()) as unknown as T;
}

/** The results for all items, or all their problems, as `throwFirst` throws them. Ends when there are enough problems. */
export function eachOf<I, R>(items: readonly I[], work: (item: I, index: number) => R): R[] {
  const results: R[] = [];
  const problems: Problem[] = [];
  for (const [index, item] of items.entries()) {
    const result = attemptSync(() => work(item, index));
    if (!(result instanceof Problem)) results.push(result);
    else if (problems.push(result) === MAX_PROBLEMS) break;
  }
  throwFirst(problems);
  return results;
}

/** The problem and its others. */
export const allIn = (problem: Problem): readonly Problem[] => [
  problem.others.length === 0 ? problem : problem.with({ others: [] }),
  ...problem.others,
];

/** Each problem once. */
export const distinct = (all: readonly Problem[]): Problem[] => [
  ...new Map(all.map((each) => [`${each.reason}: ${each.message}`, each])).values(),
];

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
  constructor(reason: MissingReason, parts: string | ProblemParts, policy: MissingPolicy) {
    super(reason, parts);
    this.policy = policy;
  }
}
