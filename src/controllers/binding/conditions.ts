/** Computes the status of a binding, its conditions and its warnings from the outcomes of its targets. Pure. */
import { isDeepStrictEqual } from "node:util";
import {
  type Condition,
  describeTarget,
  type SecretBinding,
  type Status,
  type TargetStatus,
} from "../../api/binding.ts";
import { withProgress } from "../../api/progress.ts";
import { handledRefresh } from "../../api/refresh.ts";
import { storedStatus } from "../../api/status-records.ts";
import { conditionOf, MAX_MESSAGE_LENGTH, type Verdict } from "../../api/verdict.ts";
import { parseApiVersion } from "../../apimachinery/objects.ts";
import { allIn, type Problem } from "../../apimachinery/problem.ts";
import { mostUrgent } from "../../apimachinery/reasons.ts";
import type { rolloutOf } from "../../rollout/status.ts";
import type { LackingAccess, Overview, TargetOutcome } from "../../targets/outcome.ts";
import { withCommands, withPrinting } from "./permission-messages.ts";
import { rolloutHint, syncedMessage } from "./synced-message.ts";

const NOTHING_MORE: Overview = { unresolved: [], notes: [] };
/** The most problems in a status, and the longest command there, in characters. */
const MAX_PROBLEMS = 10;
const MAX_COMMAND_LENGTH = 4096;

type StatusProblem = NonNullable<Status["problems"]>[number];

/** A problem, and the target that has it. */
interface Failed {
  readonly target?: StatusProblem["target"];
  readonly problem: Problem;
}

/** The problems of all targets, the one that needs a user most first. A withdrawn grant comes before all others. */
function failedTargets(
  outcomes: readonly TargetOutcome[],
  { unresolved }: Pick<Overview, "unresolved">,
): readonly Failed[] {
  const all: Failed[] = [
    ...unresolved.map(({ target: { apiVersion, kind }, problem }) => ({ target: { apiVersion, kind }, problem })),
    ...outcomes.flatMap(({ record: { apiVersion, kind, namespace, name }, problem }) => {
      const target = { apiVersion, kind, ...(namespace !== undefined && { namespace }), name };
      return problem === undefined ? [] : [{ target, problem }];
    }),
  ];
  // A copied value whose grant was withdrawn must be rotated, whatever else is wrong.
  const first = all.find(({ problem }) => problem.reason === "GrantWithdrawn") ?? mostUrgent(all, reasonIn);
  return first === undefined ? [] : [first, ...all.filter((each) => each !== first)];
}

const reasonIn = ({ problem }: Failed): string => problem.reason;

/** Each problem once, although many targets may have it: those of an entry share one. */
function distinct(failed: readonly Failed[]): Failed[] {
  const known = new Set<Problem>();
  const byMessage = new Map<string, Failed>();
  for (const { target, problem } of failed) {
    if (known.has(problem)) continue;
    known.add(problem);
    for (const each of allIn(problem))
      if (!byMessage.has(each.message)) byMessage.set(each.message, { ...(target && { target }), problem: each });
  }
  return [...byMessage.values()];
}

/** The problem as a condition says it: with its target, and the number of other problems. */
function inCondition({ target, problem }: Failed, others: number): Problem {
  const placed = target === undefined ? problem : problem.within(describeTarget(target));
  return others === 0 ? placed : placed.with({ what: `${placed.what} (and ${others} more, see status.problems)` });
}

/** One verdict for all targets: ready if all have the current values, which `message` may describe. Otherwise the first problem. */
export function judge(
  outcomes: readonly TargetOutcome[],
  overview: Overview = NOTHING_MORE,
  binding?: SecretBinding,
  message?: string,
  failed = distinct(failedTargets(outcomes, overview)),
): Verdict {
  const [first, ...others] = failed;
  if (first === undefined)
    return { ready: "True", reason: "Synced", message: message ?? syncedMessage(outcomes, overview.notes) };
  const said = inCondition(first, others.length);
  const { problem } = first;
  return refusedAs(binding === undefined ? said : withCommands(said, binding, overview.lacking), problem);
}

const refusedAs = ({ reason, message }: Problem, problem: Problem): Verdict => ({
  ready: "False",
  reason,
  message,
  problem,
});

/** For tools: the parts of the first problems. */
function problemsIn(binding: SecretBinding, all: readonly Failed[], lacking?: LackingAccess): Pick<Status, "problems"> {
  // Those of the targets are distinct already; one of the rollout may repeat them.
  const shown = distinct(all.slice(0, MAX_PROBLEMS + 1)).slice(0, MAX_PROBLEMS);
  if (shown.length === 0) return {};
  return {
    problems: shown.map(({ target, problem }, position) => {
      const how = position === 0 ? withCommands : withPrinting;
      const { reason, at, what, fix, command, note } = how(problem, binding, lacking);
      const { source } = problem;
      const message = note === undefined ? what : `${what} (${note})`;
      return {
        ...(target && { target }),
        ...(source !== undefined && { source }),
        reason,
        ...(at.length > 0 && { path: at.join(": ").slice(0, MAX_MESSAGE_LENGTH) }),
        message: message.slice(0, MAX_MESSAGE_LENGTH),
        ...(fix !== undefined && { fix: fix.slice(0, MAX_MESSAGE_LENGTH) }),
        ...(command !== undefined && command.length <= MAX_COMMAND_LENGTH && { command }),
      };
    }),
  };
}

/** The message of a binding that writes and restarts nothing; undefined for another one. */
function onlyProtects({ spec: { sources, targets, rollout } }: SecretBinding): string | undefined {
  if (targets.length > 0 || rollout !== undefined) return undefined;
  const objects = sources.flatMap(({ protect, secret, configMap }) => {
    if (protect === undefined) return [];
    return secret ? `Secret ${secret.name}` : `ConfigMap ${configMap?.name}`;
  });
  return `there are no targets to write, only ${objects.join(", ")} to protect`;
}

/**
 * The whole status after a reconcile. `left` are records of objects that the spec no longer names and that are not released yet.
 */
export function statusOf(
  binding: SecretBinding,
  outcomes: readonly TargetOutcome[],
  left: readonly TargetOutcome[],
  now: Date,
  overview: Overview = NOTHING_MORE,
  rollout?: RolloutReport,
  incomplete?: Verdict,
): Status {
  const all = [...outcomes, ...left];
  const { lacking } = overview;
  const { commands = [] } = lacking ?? {};
  const counted = outcomes.filter(({ excluded }) => excluded === undefined);
  const synced = counted.filter(({ problem }) => problem === undefined).length;
  const failed = distinct(failedTargets(all, overview));
  const rolledOut = rollout ? rolledOutCondition(binding, rollout, now, failed[0]?.problem, lacking) : [];
  const protects = all.length === 0 && overview.unresolved.length === 0 ? onlyProtects(binding) : undefined;
  const { message, ...verdict } = protects && incomplete ? incomplete : judge(all, overview, binding, protects, failed);
  const hint = verdict.ready === "True" ? rolloutHint(rolledOut[0]) : "";
  const isAcknowledged = binding.spec.acknowledge?.includes("ReadableCopies") ?? false;
  return {
    observedGeneration: binding.metadata.generation ?? 0,
    synced: `${synced}/${counted.length}`,
    conditions: withProgress(
      binding,
      [
        conditionOf("Ready", binding, { ...verdict, message: message + hint }, now),
        ...rolledOut,
        ...incompleteCondition(binding, incomplete, now),
      ],
      now,
    ),
    ...problemsIn(binding, [...failed, ...(rollout?.problem ? [{ problem: rollout.problem }] : [])], lacking),
    ...(overview.notes.length > 0 && { notes: [...overview.notes] }),
    ...handledRefresh(binding, overview.isRefreshed ?? true),
    targets: all.map((each) => recordOf(binding, each, isAcknowledged, lacking)),
    ...(commands.length > 0 && { missingPermissions: commands.join("\n") }),
    ...(rollout?.status && { rollout: rollout.status }),
  };
}

/** The part of a rollout that the status reports. */
type RolloutReport = Omit<ReturnType<typeof rolloutOf>, "problem"> & { problem?: Problem | undefined };

export const SUSPENDED: Verdict = {
  ready: "Unknown",
  reason: "Suspended",
  message: "spec.suspend is true, so nothing is written or released; set it to false to catch up",
};

/** The verdict for a binding that Inlay does not process. */
export const refused = (problem: Problem): Verdict => refusedAs(problem, problem);

/**
 * The status of a binding that Inlay does not process: records stay, and so do the commands that they refer to, and the
 * state of its `rollout`.
 */
export function heldStatus(
  binding: SecretBinding,
  verdict: Verdict,
  now: Date,
  rollout?: RolloutReport,
  incomplete?: Verdict,
): Status {
  const { missingPermissions, problems: _, ...before } = binding.status ?? {};
  const conditions = [
    conditionOf("Ready", binding, verdict, now),
    ...rolledOutCondition(binding, rollout, now),
    ...incompleteCondition(binding, incomplete, now),
  ];
  const isReferredTo = [...(before.targets ?? []), ...conditions].some(({ reason }) => reason === "Forbidden");
  return {
    ...before,
    ...(verdict.problem && problemsIn(binding, [{ problem: verdict.problem }])),
    ...handledRefresh(binding, true),
    ...(missingPermissions !== undefined && isReferredTo && { missingPermissions }),
    observedGeneration: binding.metadata.generation ?? 0,
    conditions: withProgress(binding, conditions, now),
    ...(rollout?.status && { rollout: rollout.status }),
  };
}

/** `shown` is the problem that the condition Ready has. */
function rolledOutCondition(
  binding: SecretBinding,
  rollout: RolloutReport | undefined,
  now: Date,
  shown?: Problem,
  lacking?: LackingAccess,
): Condition[] {
  if (rollout?.verdict === undefined)
    return (binding.status?.conditions ?? []).filter(({ type }) => type === "RolledOut");
  const { verdict, problem } = rollout;
  const message =
    problem === undefined
      ? verdict.message
      : problem.isSame(shown)
        ? "see the condition Ready"
        : withCommands(problem, binding, lacking).message;
  return [conditionOf("RolledOut", binding, { ...verdict, message }, now)];
}

const incompleteCondition = (binding: SecretBinding, incomplete: Verdict | undefined, now: Date): Condition[] =>
  incomplete === undefined ? [] : [conditionOf("InstallationComplete", binding, incomplete, now)];

/** Whether both are stored as the same status. */
export function isSameStatus(a: Status | undefined, b: Status): boolean {
  return a !== undefined && isDeepStrictEqual(storedStatus(a), storedStatus(b));
}

function recordOf(
  binding: SecretBinding,
  { record, problem, excluded, note, readable, applied }: TargetOutcome,
  isAcknowledged: boolean,
  lacking: LackingAccess | undefined,
): TargetStatus {
  const { message: _, readablePaths: before = [], ...rest } = record;
  const why = problem ?? excluded;
  const message = why ? withPrinting(why, binding, lacking).message : note;
  // Without a sync, the earlier copies are still there.
  const copies = readable?.paths ?? (applied !== undefined || isAcknowledged ? [] : before);
  const readablePaths = copies.filter((path) => record.paths?.includes(path));
  return {
    ...rest,
    ...(readablePaths.length > 0 && { readablePaths }),
    reason: why?.reason ?? "Synced",
    ...(message !== undefined && { message: message.slice(0, MAX_MESSAGE_LENGTH) }),
  };
}

/**
 * Warnings about values that more people can read from now on, one for each kind. The recorded paths decide what is new, so
 * another object, a new value or a restart of the controller does not repeat a warning.
 */
export function newlyReadable(binding: SecretBinding, outcomes: readonly TargetOutcome[]): Set<string> {
  const placeOf = ({ apiVersion, kind, namespace }: TargetStatus, path: string) =>
    [parseApiVersion(apiVersion).group, kind, namespace === binding.metadata.namespace, path].join("|");
  const known = new Set(
    (binding.status?.targets ?? []).flatMap((record) => (record.paths ?? []).map((path) => placeOf(record, path))),
  );
  const isNew = ({ record, readable }: TargetOutcome) =>
    readable?.paths.some((path) => record.paths?.includes(path) && !known.has(placeOf(record, path)));
  return new Set(outcomes.filter(isNew).flatMap(({ readable }) => readable?.note ?? []));
}
