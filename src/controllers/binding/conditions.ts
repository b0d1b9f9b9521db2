/** Computes the status of a binding, its conditions and its warnings from the outcomes of its targets. Pure. */
import { isDeepStrictEqual } from "node:util";
import type { Condition, SecretBinding, Status, TargetStatus } from "../../api/binding.ts";
import { withProgress } from "../../api/progress.ts";
import { handledRefresh } from "../../api/refresh.ts";
import { storedStatus } from "../../api/status-records.ts";
import { conditionOf, MAX_MESSAGE_LENGTH, type Verdict } from "../../api/verdict.ts";
import { describeObject, parseApiVersion } from "../../apimachinery/objects.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import { mostUrgent } from "../../apimachinery/reasons.ts";
import type { rolloutOf } from "../../rollout/status.ts";
import type { LackingAccess, Overview, TargetOutcome } from "../../targets/outcome.ts";
import { plainly, type Says, sayingHow, targetMessage } from "./permission-messages.ts";
import { rolloutHint, syncedMessage } from "./synced-message.ts";

const NOTHING_MORE: Overview = { unresolved: [], notes: [] };

/**
 * One verdict for all targets: ready if all have the current values, which `message` may describe. Otherwise the first problem of those
 * that need a user most. A withdrawn grant comes before all others.
 */
export function judge(
  outcomes: readonly TargetOutcome[],
  { unresolved, notes }: Overview = NOTHING_MORE,
  says: Says = plainly,
  message?: string,
): Verdict {
  const failed = [
    ...unresolved.map(({ target, problem }) => ({ what: `${target.kind} objects`, problem })),
    ...outcomes.flatMap(({ record: { kind, namespace, name }, problem }) =>
      problem === undefined ? [] : [{ what: describeObject(kind, namespace, name), problem }],
    ),
  ];
  // A copied value whose grant was withdrawn must be rotated, whatever else is wrong.
  const withdrawn = failed.find(({ problem }) => problem.reason === "GrantWithdrawn");
  const first = withdrawn ?? mostUrgent(failed, ({ problem }) => problem.reason);
  if (first === undefined)
    return { ready: "True", reason: "Synced", message: message ?? syncedMessage(outcomes, notes) };
  const others = new Set(failed.map(({ problem }) => problem.message)).size - 1;
  const more = others > 0 ? ` (and ${others} more, see status.targets)` : "";
  return { ready: "False", reason: first.problem.reason, message: says(`${first.what}: `, first.problem, more) };
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
  const says = lacking === undefined ? plainly : sayingHow(binding, lacking);
  const rolledOut = rollout ? rolledOutCondition(binding, rollout, now, says) : [];
  const protects = all.length === 0 && overview.unresolved.length === 0 ? onlyProtects(binding) : undefined;
  const { message, ...verdict } = protects && incomplete ? incomplete : judge(all, overview, says, protects);
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
export const refused = ({ reason, message }: Problem): Verdict => ({ ready: "False", reason, message });

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
  const { missingPermissions, ...before } = binding.status ?? {};
  const conditions = [
    conditionOf("Ready", binding, verdict, now),
    ...rolledOutCondition(binding, rollout, now),
    ...incompleteCondition(binding, incomplete, now),
  ];
  const isReferredTo = [...(before.targets ?? []), ...conditions].some(({ reason }) => reason === "Forbidden");
  return {
    ...before,
    ...handledRefresh(binding, true),
    ...(missingPermissions !== undefined && isReferredTo && { missingPermissions }),
    observedGeneration: binding.metadata.generation ?? 0,
    conditions: withProgress(binding, conditions, now),
    ...(rollout?.status && { rollout: rollout.status }),
  };
}

function rolledOutCondition(
  binding: SecretBinding,
  rollout: RolloutReport | undefined,
  now: Date,
  says: Says = plainly,
): Condition[] {
  if (rollout?.verdict !== undefined) {
    const { verdict, problem } = rollout;
    return [conditionOf("RolledOut", binding, problem ? { ...verdict, message: says("", problem, "") } : verdict, now)];
  }
  return (binding.status?.conditions ?? []).filter(({ type }) => type === "RolledOut");
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
  const message = why ? targetMessage(binding, why, lacking) : note;
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
