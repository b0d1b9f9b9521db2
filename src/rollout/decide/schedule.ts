/** The workloads of a rollout come in, with how far each is; those that restart now go out, and why the others wait. Pure. */
import type { Digests } from "../../api/rollout.ts";
import type { ConditionReason } from "../../apimachinery/reasons.ts";
import type { Dependent, NamespaceProblem, RolloutBlock, Step } from "../types.ts";
import { type AffectedWorkload as Entry, type Rollout, stampFor } from "./affected.ts";

/** So many that failed are told of in one message. Each has its own in status. */
const MAX_TOLD = 3;

/** What restarts may begin by. */
export interface ScheduleInput {
  now: number;
  steps: readonly Step[];
  /** The namespaces whose workloads can't be known. */
  unknown: readonly NamespaceProblem[];
  maxConcurrent: number;
  /** Why this workload may not be restarted at all. */
  refusal(dependent: Dependent): string | undefined;
  /** The API server refused its last restart: it goes after all others, so that it takes no place from them. */
  wasRefused(dependent: Dependent): boolean;
  /** Whether there is a place for it among all that roll in the installation; if so, it is taken. */
  take(dependent: Dependent): boolean;
}

/** A restart to be made. */
export interface PlannedRestart {
  dependent: Dependent;
  stamp: string;
  /** The digests that it is for: of what changed, or went back after it was restarted for it. */
  causes: string[];
}

/** Begins with what may begin of the first step that is not through. The entries are brought up to that. */
export function schedule(
  turn: ScheduleInput,
  entries: Entry[],
  rollout: Rollout,
  changed: Digests,
  formerlyChanged: Digests,
): { stamps: PlannedRestart[]; said: RolloutBlock } {
  for (const [position, step] of turn.steps.entries()) {
    const group = entries.filter(({ dependent }) => dependent.step === position);
    const open = group.filter(({ entry }) => entry.state !== "Done");
    const failed = open.filter(({ entry }) => entry.state === "Failed");
    const unknown = turn.unknown.filter((each) => each.step === position);
    const isThrough = open.length === 0 || (step.onFailure === "Continue" && failed.length === open.length);
    if (isThrough && unknown.length === 0) continue;
    const label = step.name === undefined ? "" : `step ${step.name}: `;
    if (failed.length > 0 && step.onFailure === "Halt") {
      const message = `${label}${failedText(failed)}; nothing more is restarted until it has rolled out`;
      return { stamps: [], said: { reason: "RolloutFailed", message } };
    }
    const plan = (dependent: Dependent): PlannedRestart => ({
      dependent,
      stamp: stampFor(rollout, dependent, changed),
      causes: causesOf(dependent, changed, formerlyChanged),
    });
    const { stamps, waits } = startGroup(turn, group, entries, plan);
    return { stamps, said: saidOf(label, group, waits ?? waitingFor(unknown)) };
  }
  const failed = entries.filter(({ entry }) => entry.state === "Failed");
  return { stamps: [], said: { reason: "RolloutFailed", message: failedText(failed) } };
}

/** What a step waits for of which not all workloads can be known. */
function waitingFor([first, ...others]: readonly NamespaceProblem[]): RolloutBlock | undefined {
  if (first === undefined) return undefined;
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  const message = `the workloads of namespace ${first.namespace}${more} are not known: ${first.problem.message}`;
  return { reason: first.problem.reason, message };
}

/** Plans what there are places for. `waits` is why the others wait, if any do. */
function startGroup(
  turn: ScheduleInput,
  group: Entry[],
  all: Entry[],
  plan: (dependent: Dependent) => PlannedRestart,
): { stamps: PlannedRestart[]; waits?: RolloutBlock } {
  const stamps: PlannedRestart[] = [];
  const waiting = (reason: ConditionReason, message: string) => ({ stamps, waits: { reason, message } });
  let places = turn.maxConcurrent - all.filter(isRolling).length;
  let refused: string | undefined;
  /** The namespaces that have no place left. */
  const full = new Set<string | undefined>();
  // Those that are rolling out anyway have their places.
  const rank = (each: Entry) => (isRolling(each) ? 0 : turn.wasRefused(each.dependent) ? 2 : 1);
  for (const each of group.toSorted((a, b) => rank(a) - rank(b))) {
    if (!each.isDue) continue;
    const hasPlace = isRolling(each);
    const why = each.lacks ?? turn.refusal(each.dependent);
    if (why !== undefined) {
      refused ??= why;
      each.entry = { ...each.entry, message: why };
      continue;
    }
    if (places <= 0 && !hasPlace)
      return waiting("MaxConcurrent", "as many are rolling out as spec.rollout.maxConcurrent allows");
    const { namespace } = each.dependent.ref;
    if (full.has(namespace) || !turn.take(each.dependent)) {
      full.add(namespace);
      continue;
    }
    const planned = plan(each.dependent);
    const { message: _, ...rest } = each.entry;
    each.entry = { ...rest, state: "Rolling", stamp: planned.stamp, restartTime: timeOf(turn.now) };
    each.isDue = false;
    stamps.push(planned);
    if (!hasPlace) places--;
  }
  if (full.size > 0) return waiting("MaxConcurrent", "as many are rolling out as the installation allows");
  return refused === undefined ? { stamps } : waiting("RestartBlocked", refused);
}

function causesOf({ uses }: Dependent, changed: Digests, formerlyChanged: Digests): string[] {
  const all = [...uses].sort();
  const causes = [changed, formerlyChanged].map((digests) => all.filter((id) => digests[id] !== undefined));
  return causes.find(({ length }) => length > 0) ?? all;
}

function saidOf(label: string, group: Entry[], waits: RolloutBlock | undefined): RolloutBlock {
  const counts = (["Rolling", "Waiting"] as const).flatMap((state) => {
    const { length } = group.filter(({ entry }) => entry.state === state);
    return length === 0 ? [] : `${length} of ${group.length} ${state === "Rolling" ? "rolling out" : "waiting"}`;
  });
  const message = `${label}${[counts.join(", "), waits?.message].filter(Boolean).join(": ")}`;
  return { reason: waits?.reason ?? "RollingOut", message };
}

function failedText(failed: Entry[]): string {
  const told = failed
    .slice(0, MAX_TOLD)
    .map(({ entry: { kind, namespace, name, message = "" } }) => `${kind} ${namespace}/${name}: ${message}`);
  const more = failed.length - told.length;
  return `${told.join("; ")}${more > 0 ? `; and ${more} more, see status.rollout.pending.workloads` : ""}`;
}

/** However much time a binding gives its workloads: nobody keeps the others of an installation waiting for ever. */
export const MAX_PLACE_MS = 3_600_000;

/** One that is paused takes nobody's place. */
export const isRolling = ({ entry, dependent }: Entry) => entry.state === "Rolling" && !dependent.workload.paused;

/** To the millisecond: two changes in a second are two. */
export const timeOf = (ms: number) => new Date(ms).toISOString();
