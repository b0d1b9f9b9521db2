/** The outcomes of a binding's targets come in, its status goes out. Pure. */
import { isDeepStrictEqual } from "node:util";
import type { Condition, SecretBinding, Status, TargetStatus } from "../../api/binding.ts";
import type { RolloutStatus } from "../../api/rollout.ts";
import { storedStatus } from "../../api/status-records.ts";
import { describeObject } from "../../apimachinery/objects.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import type { Overview, TargetOutcome } from "../../targets/outcome.ts";

/** Longer messages are cut: a status is read by people. */
const LONGEST_MESSAGE = 1024;

const NOTHING_MORE: Overview = { unknown: [], notes: [] };

export interface Verdict {
  /** Unknown while nobody looks. */
  ready: Condition["status"];
  reason: string;
  message: string;
}

/** One verdict of all targets: ready when each holds the current values, else the first that stands in the way. */
export function judge(outcomes: readonly TargetOutcome[], { unknown, notes }: Overview = NOTHING_MORE): Verdict {
  const failed = [
    ...unknown.map(({ target, problem }) => ({ what: `${target.kind} objects`, problem })),
    ...outcomes.flatMap(({ record: { kind, namespace, name }, problem }) =>
      problem === undefined ? [] : [{ what: describeObject(kind, namespace, name), problem }],
    ),
  ];
  const [first] = failed;
  if (first === undefined) {
    const more = new Set([...outcomes.flatMap(({ note }) => note ?? []), ...notes]);
    const message = [countOf(outcomes.length), ...more].join("; ");
    return { ready: "True", reason: "Synced", message: message.slice(0, LONGEST_MESSAGE) };
  }
  const others = new Set(failed.map(({ problem }) => problem.message)).size - 1;
  const more = others > 0 ? ` (and ${others} more, see status.targets)` : "";
  const message = `${first.what}: ${first.problem.message}${more}`;
  return { ready: "False", reason: first.problem.reason, message: message.slice(0, LONGEST_MESSAGE) };
}

function countOf(targets: number): string {
  if (targets === 0) return "there is nothing to write to";
  return `${targets === 1 ? "the target holds" : `all ${targets} targets hold`} the current values`;
}

/** The whole status after a reconcile. `left` are records of objects that the spec names no more and that remain. */
export function statusOf(
  binding: SecretBinding,
  outcomes: readonly TargetOutcome[],
  left: readonly TargetOutcome[],
  now: Date,
  overview: Overview = NOTHING_MORE,
  rolled?: RolledOut,
): Status {
  const verdict = judge([...outcomes, ...left], overview);
  const synced = outcomes.filter(({ problem }) => problem === undefined).length;
  return {
    observedGeneration: binding.metadata.generation ?? 0,
    synced: `${synced}/${outcomes.length}`,
    conditions: [condition("Ready", binding, verdict, now), ...(rolled ? rolledOutOf(binding, rolled, now) : [])],
    targets: [...outcomes, ...left].map(recordOf),
    ...(rolled?.status && { rollout: rolled.status }),
  };
}

/** What is to be said of a rollout. */
export interface RolledOut {
  status: RolloutStatus | undefined;
  /** Undefined where what was said before stays. */
  verdict: Verdict | undefined;
}

export const SUSPENDED: Verdict = {
  ready: "Unknown",
  reason: "Suspended",
  message: "spec.suspend is true, so nothing is written or released; set it to false to catch up",
};

/** Of a binding that is not acted upon at all. */
export const refused = ({ reason, message }: Problem): Verdict => ({ ready: "False", reason, message });

/** The status of a binding that is not acted upon: what is recorded stays, with how far a rollout was `rolled` until then. */
export function heldStatus(binding: SecretBinding, verdict: Verdict, now: Date, rolled?: RolledOut): Status {
  return {
    ...binding.status,
    observedGeneration: binding.metadata.generation ?? 0,
    conditions: [condition("Ready", binding, verdict, now), ...rolledOutOf(binding, rolled, now)],
    ...(rolled?.status && { rollout: rolled.status }),
  };
}

function rolledOutOf(binding: SecretBinding, rolled: RolledOut | undefined, now: Date): Condition[] {
  if (rolled?.verdict !== undefined) return [condition("RolledOut", binding, rolled.verdict, now)];
  return (binding.status?.conditions ?? []).filter(({ type }) => type === "RolledOut");
}

/** The binding's status with other records, for the note that is made before a first write. */
export function withRecords(binding: SecretBinding, targets: readonly TargetStatus[]): Status {
  return { ...binding.status, targets: [...targets] };
}

/** Whether the two are stored alike. */
export function isSameStatus(a: Status | undefined, b: Status): boolean {
  return a !== undefined && isDeepStrictEqual(storedStatus(a), storedStatus(b));
}

function recordOf({ record, problem, note }: TargetOutcome): TargetStatus {
  const { message: _, ...rest } = record;
  if (problem === undefined) {
    return { ...rest, reason: "Synced", ...(note !== undefined && { message: note.slice(0, LONGEST_MESSAGE) }) };
  }
  return { ...rest, reason: problem.reason, message: problem.message.slice(0, LONGEST_MESSAGE) };
}

function condition(type: "Ready" | "RolledOut", binding: SecretBinding, verdict: Verdict, now: Date): Condition {
  const status = verdict.ready;
  const before = binding.status?.conditions?.find((each) => each.type === type);
  return {
    type,
    status,
    reason: verdict.reason,
    message: verdict.message.slice(0, LONGEST_MESSAGE),
    observedGeneration: binding.metadata.generation ?? 0,
    lastTransitionTime:
      before?.status === status ? before.lastTransitionTime : now.toISOString().replace(/\.\d+Z$/, "Z"),
  };
}
