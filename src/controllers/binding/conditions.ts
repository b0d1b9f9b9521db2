/** Computes the status of a binding, its conditions and its warnings from the outcomes of its targets. Pure. */
import { isDeepStrictEqual } from "node:util";
import type { Condition, SecretBinding, Status, TargetStatus } from "../../api/binding.ts";
import { storedStatus } from "../../api/status-records.ts";
import { conditionOf, MAX_MESSAGE_LENGTH, type Verdict } from "../../api/verdict.ts";
import { describeObject, parseApiVersion } from "../../apimachinery/objects.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import { AccessDenied, mayBeMissing, withoutCommands } from "../../kube/access-error.ts";
import { CONTROLLER, describeIdentity } from "../../kube/identity.ts";
import type { rolloutOf } from "../../rollout/status.ts";
import type { LackingAccess, Overview, TargetOutcome } from "../../targets/outcome.ts";
import { rolloutHint, syncedMessage } from "./synced-message.ts";

/** The field of the status with the commands that grant all missing permissions. */
const COMMANDS = "{.status.missingPermissions}";

const NOTHING_MORE: Overview = { unresolved: [], notes: [] };

/**
 * One verdict for all targets: ready if all have the current values. Otherwise the first problem, but a withdrawn grant comes
 * before all others.
 */
export function judge(outcomes: readonly TargetOutcome[], { unresolved, notes }: Overview = NOTHING_MORE): Verdict {
  const failed = [
    ...unresolved.map(({ target, problem }) => ({ what: `${target.kind} objects`, problem })),
    ...outcomes.flatMap(({ record: { kind, namespace, name }, problem }) =>
      problem === undefined ? [] : [{ what: describeObject(kind, namespace, name), problem }],
    ),
  ];
  // A copied value whose grant was withdrawn must be rotated, whatever else is wrong.
  const first = failed.find(({ problem }) => problem.reason === "GrantWithdrawn") ?? failed[0];
  if (first === undefined) return { ready: "True", reason: "Synced", message: syncedMessage(outcomes, notes) };
  const others = new Set(failed.map(({ problem }) => problem.message)).size - 1;
  const more = others > 0 ? ` (and ${others} more, see status.targets)` : "";
  return { ready: "False", reason: first.problem.reason, message: `${first.what}: ${first.problem.message}${more}` };
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
  const synced = outcomes.filter(({ problem }) => problem === undefined).length;
  const rolledOut = rollout ? rolledOutCondition(binding, rollout, now, lacking) : [];
  const { message, ...verdict } = withGrants(judge(all, overview), binding, lacking);
  const hint = verdict.ready === "True" ? rolloutHint(rolledOut[0]) : "";
  const isAcknowledged = binding.spec.acknowledge?.includes("ReadableCopies") ?? false;
  return {
    observedGeneration: binding.metadata.generation ?? 0,
    synced: `${synced}/${outcomes.length}`,
    conditions: [
      conditionOf("Ready", binding, { ...verdict, message: message + hint }, now),
      ...rolledOut,
      ...incompleteCondition(binding, incomplete, now),
    ],
    ...(overview.notes.length > 0 && { notes: [...overview.notes] }),
    targets: all.map((each) => recordOf(binding, each, isAcknowledged, lacking)),
    ...(commands.length > 0 && { missingPermissions: commands.join("\n") }),
    ...(rollout?.status && { rollout: rollout.status }),
  };
}

/** Prints the commands for all permissions that the account of a binding lacks. */
const printing = ({ metadata: { name, namespace } }: SecretBinding) =>
  `kubectl get secretbinding ${name} -n ${namespace} -o jsonpath='${COMMANDS}'`;

/** A verdict about a missing permission, with the commands for all of them. If they are too long, it says how to print them. */
export function withGrants(verdict: Verdict, binding: SecretBinding, lacking: LackingAccess | undefined): Verdict {
  const isOfInlay = verdict.message.includes(describeIdentity(CONTROLLER));
  if (lacking === undefined || verdict.reason !== "Forbidden" || isOfInlay) return verdict;
  const { commands, words, missingNamespaces } = lacking;
  const refused = withoutCommands(verdict.message);
  const namespace = missingNamespaces.find((each) => refused.includes(mayBeMissing(each)));
  if (namespace !== undefined) {
    const [before] = refused.split(mayBeMissing(namespace), 1);
    const message = `${before}there is no namespace ${namespace}; create it with: kubectl create namespace ${namespace}`;
    return { ...verdict, message };
  }
  if (commands.length === 0) return verdict;
  const what = commands.length === 1 ? "it" : "all that this binding lacks";
  const message = `${refused}; allow ${what} with: ${commands.join("; ")}`;
  // A message of the full length counts as cut.
  if (message.length < MAX_MESSAGE_LENGTH) return { ...verdict, message };
  for (let shown = words.length; shown > 0; shown--) {
    const others = words.length - shown;
    const all = `${words.slice(0, shown).join("; ")}${others > 0 ? `; and ${others} more` : ""}`;
    const says = `${refused}; this binding lacks: ${all}; print the commands that allow all of it with: ${printing(binding)}`;
    if (says.length < MAX_MESSAGE_LENGTH) return { ...verdict, message: says };
  }
  return { ...verdict, message: `${refused}; print the commands that allow it with: ${printing(binding)}` };
}

/** The part of a rollout that the status reports. */
type RolloutReport = ReturnType<typeof rolloutOf>;

export const SUSPENDED: Verdict = {
  ready: "Unknown",
  reason: "Suspended",
  message: "spec.suspend is true, so nothing is written or released; set it to false to catch up",
};

/** The verdict for a binding that Inlay does not process. */
export const refused = ({ reason, message }: Problem): Verdict => ({ ready: "False", reason, message });

/** The status of a binding that Inlay does not process: records stay, and so does the state of its `rollout`. */
export function heldStatus(
  binding: SecretBinding,
  verdict: Verdict,
  now: Date,
  rollout?: RolloutReport,
  incomplete?: Verdict,
): Status {
  const { missingPermissions: _, ...before } = binding.status ?? {};
  return {
    ...before,
    observedGeneration: binding.metadata.generation ?? 0,
    conditions: [
      conditionOf("Ready", binding, verdict, now),
      ...rolledOutCondition(binding, rollout, now),
      ...incompleteCondition(binding, incomplete, now),
    ],
    ...(rollout?.status && { rollout: rollout.status }),
  };
}

function rolledOutCondition(
  binding: SecretBinding,
  rollout: RolloutReport | undefined,
  now: Date,
  lacking?: LackingAccess,
): Condition[] {
  if (rollout?.verdict !== undefined)
    return [conditionOf("RolledOut", binding, withGrants(rollout.verdict, binding, lacking), now)];
  return (binding.status?.conditions ?? []).filter(({ type }) => type === "RolledOut");
}

const incompleteCondition = (binding: SecretBinding, incomplete: Verdict | undefined, now: Date): Condition[] =>
  incomplete === undefined ? [] : [conditionOf("InstallationComplete", binding, incomplete, now)];

/** Whether both are stored as the same status. */
export function isSameStatus(a: Status | undefined, b: Status): boolean {
  return a !== undefined && isDeepStrictEqual(storedStatus(a), storedStatus(b));
}

/** The commands for all targets are in the status once. */
function recordOf(
  binding: SecretBinding,
  { record, problem, note, readable, applied }: TargetOutcome,
  isAcknowledged: boolean,
  lacking: LackingAccess | undefined,
): TargetStatus {
  const { message: _, readablePaths: before = [], ...rest } = record;
  const isLacking = lacking !== undefined && lacking.commands.length > 0 && problem instanceof AccessDenied;
  const print = isLacking ? `; print the commands that allow it with: ${printing(binding)}` : "";
  const message = isLacking ? `${withoutCommands(problem.message)}${print}` : (problem?.message ?? note);
  // Without a sync, the earlier copies are still there.
  const copies = readable?.paths ?? (applied !== undefined || isAcknowledged ? [] : before);
  const readablePaths = copies.filter((path) => record.paths?.includes(path));
  return {
    ...rest,
    ...(readablePaths.length > 0 && { readablePaths }),
    reason: problem?.reason ?? "Synced",
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
