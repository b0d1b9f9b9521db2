/**
 * Adjusts recorded and present digests so that they differ only where the difference counts as a change. A created or deleted
 * source counts only if restartOn says so. If pods mount several versions of an object, a version counts that no pod had before;
 * versions that disappear with their pods do not. Pure.
 */
import type { Digests, RolloutSpec, RolloutStatus } from "../../api/rollout.ts";
import { digestsIn } from "../digest/digest.ts";
import { ABSENT, isPresent } from "../digest/presence.ts";
import type { Rekeyed } from "./affected.ts";

interface Compared {
  before: RolloutStatus | undefined;
  digests: Digests;
}

/** A difference that does not count becomes part of the baseline. During a rollout, the digest that it restarts for stays. */
export function countedOf(
  { before, digests }: Compared,
  used: Iterable<string>,
  restartOn: RolloutSpec["restartOn"] = [],
  rekeyed?: Rekeyed,
): Compared {
  if (before === undefined) return { before, digests };
  const [known, now] = [{ ...before.digests }, { ...digests }];
  const pending = before.pending?.digests ?? {};
  // The digests in the status were computed with that key.
  const compared = rekeyed?.former ?? digests;
  for (const id of used) {
    const [was, is, goal] = [known[id], compared[id], pending[id]];
    if (goal !== undefined) {
      const kept = underWay(was, now[id], goal, restartOn);
      if (kept === undefined) delete now[id];
      else now[id] = kept;
    } else if (was !== undefined && !isCounted(was, is, restartOn)) {
      if (is !== undefined) known[id] = is;
      // The source was created without this key. The key counts as new once it exists.
      else if (!isPresent(was)) delete known[id];
    }
  }
  return { before: { ...before, digests: known }, digests: now };
}

/** Whether the value is unchanged, or its change counts. */
function isCounted(was: string, is: string | undefined, restartOn: NonNullable<RolloutSpec["restartOn"]>): boolean {
  if (was === is) return true;
  if (!isPresent(was)) return was === ABSENT && isPresent(is) && restartOn.includes("SourceCreated");
  if (is === undefined) return true;
  if (!isPresent(is)) return is === ABSENT && restartOn.includes("SourceDeleted");
  return !isWithin(is, [was]);
}

/** The digest that a rollout for `goal` compares; undefined for a missing value, for which the rollout waits. */
function underWay(
  was: string | undefined,
  is: string | undefined,
  goal: string,
  restartOn: NonNullable<RolloutSpec["restartOn"]>,
): string | undefined {
  if (is === undefined || is === goal) return is;
  if (!isPresent(is)) return is === ABSENT && restartOn.includes("SourceDeleted") ? is : undefined;
  if (!isPresent(goal)) return is;
  // The last pods with the former version are being deleted, or are late.
  const isOnItsWay = digestsIn(is).some((each) => digestsIn(goal).includes(each));
  return isOnItsWay && isWithin(is, [goal, ...(was === undefined ? [] : [was])]) ? goal : is;
}

function isWithin(digest: string, others: readonly string[]): boolean {
  const known = new Set(others.flatMap(digestsIn));
  return digestsIn(digest).every((each) => known.has(each));
}
