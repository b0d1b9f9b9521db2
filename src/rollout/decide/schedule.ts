/** The workloads of a rollout come in, with how far each is; those that restart now go out, and why the others wait. Pure. */
import type { Dependent, Digests, Hold, Step } from "../../api/rollout.ts";
import { type Affected as Entry, type Rollout, stampFor } from "./affected.ts";

/** So many that failed are told of in one message. Each has its own in status. */
const MOST_TOLD = 3;

/** What restarts may begin by. */
export interface Starting {
  now: number;
  steps: readonly Step[];
  maxConcurrent: number;
  /** Why this workload may not be restarted at all. */
  refusal(dependent: Dependent): string | undefined;
  /** Whether there is a place for it among all that roll in the installation; if so, it is taken. */
  take(dependent: Dependent): boolean;
}

/** A restart to be made. */
export interface Ordered {
  dependent: Dependent;
  stamp: string;
  /** The digests that it is for: of what changed, or went back after it was restarted for it. */
  causes: string[];
}

interface Started {
  stamps: Ordered[];
  said: Hold;
}

/** Begins with what may begin of the first step that is not through. The entries are brought up to that. */
export function start(
  turn: Starting,
  entries: Entry[],
  rollout: Rollout,
  changed: Digests,
  formerlyChanged: Digests,
): Started {
  const { steps } = turn;
  const stamps: Ordered[] = [];
  for (const [position, step] of steps.entries()) {
    const group = entries.filter(({ dependent }) => dependent.step === position);
    const open = group.filter(({ entry }) => entry.state !== "Done");
    const failed = open.filter(({ entry }) => entry.state === "Failed");
    if (open.length === 0 || (step.onFailure === "Continue" && failed.length === open.length)) continue;
    const label = step.name === undefined ? "" : `step ${step.name}: `;
    if (failed.length > 0 && step.onFailure === "Halt")
      return {
        stamps,
        said: {
          reason: "RolloutFailed",
          message: `${label}${failedText(failed)}; nothing more is restarted until it has rolled out`,
        },
      };
    const waits = startGroup(
      turn,
      group,
      entries,
      (dependent) => ({
        dependent,
        stamp: stampFor(rollout, dependent, changed),
        causes: causesOf(dependent, changed, formerlyChanged),
      }),
      stamps,
    );
    return { stamps, said: saidOf(label, group, waits) };
  }
  const failed = entries.filter(({ entry }) => entry.state === "Failed");
  return { stamps, said: { reason: "RolloutFailed", message: failedText(failed) } };
}

/** Stamps what there are places for. Returns why the others wait, if any do. */
function startGroup(
  turn: Starting,
  group: Entry[],
  all: Entry[],
  order: (dependent: Dependent) => Ordered,
  stamps: Ordered[],
): Hold | undefined {
  let places = turn.maxConcurrent - all.filter(isRolling).length;
  let refused: string | undefined;
  /** The namespaces that have no place left. */
  const full = new Set<string | undefined>();
  // Those that are rolling out anyway have their places.
  for (const each of group.toSorted((a, b) => Number(isRolling(b)) - Number(isRolling(a)))) {
    if (!each.isDue) continue;
    const hasPlace = isRolling(each);
    const why = each.lacks ?? turn.refusal(each.dependent);
    if (why !== undefined) {
      refused ??= why;
      each.entry = { ...each.entry, message: why };
      continue;
    }
    if (places <= 0 && !hasPlace)
      return { reason: "MaxConcurrent", message: "as many are rolling out as spec.rollout.maxConcurrent allows" };
    const { namespace } = each.dependent.ref;
    if (full.has(namespace)) continue;
    if (!turn.take(each.dependent)) {
      full.add(namespace);
      continue;
    }
    const ordered = order(each.dependent);
    const { message: _, ...rest } = each.entry;
    each.entry = { ...rest, state: "Rolling", stamp: ordered.stamp, since: timeOf(turn.now) };
    each.isDue = false;
    stamps.push(ordered);
    if (!hasPlace) places--;
  }
  if (full.size > 0) return { reason: "MaxConcurrent", message: "as many are rolling out as the installation allows" };
  return refused === undefined ? undefined : { reason: "NotRestarted", message: refused };
}

function causesOf({ uses }: Dependent, changed: Digests, formerlyChanged: Digests): string[] {
  const all = [...uses].sort();
  const causes = [changed, formerlyChanged].map((digests) => all.filter((id) => digests[id] !== undefined));
  return causes.find(({ length }) => length > 0) ?? all;
}

function saidOf(label: string, group: Entry[], waits: Hold | undefined): Hold {
  const counts = (["Rolling", "Waiting"] as const).flatMap((state) => {
    const { length } = group.filter(({ entry }) => entry.state === state);
    return length === 0 ? [] : `${length} of ${group.length} ${state === "Rolling" ? "rolling out" : "waiting"}`;
  });
  const message = `${label}${counts.join(", ")}${waits ? `: ${waits.message}` : ""}`;
  return { reason: waits?.reason ?? "RollingOut", message };
}

function failedText(failed: Entry[]): string {
  const told = failed
    .slice(0, MOST_TOLD)
    .map(({ entry: { kind, namespace, name, message = "" } }) => `${kind} ${namespace}/${name}: ${message}`);
  const more = failed.length - told.length;
  return `${told.join("; ")}${more > 0 ? `; and ${more} more, see status.rollout.pending.workloads` : ""}`;
}

/** However much time a binding gives its workloads: nobody keeps the others of an installation waiting for ever. */
export const LONGEST_PLACE_MS = 3_600_000;

/** One that is paused takes nobody's place. */
export const isRolling = ({ entry, dependent }: Entry) => entry.state === "Rolling" && !dependent.workload.paused;

/** To the millisecond: two changes in a second are two. */
export const timeOf = (ms: number) => new Date(ms).toISOString();
