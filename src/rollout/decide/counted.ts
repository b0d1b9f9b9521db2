/**
 * What status says of the values and what they are now come in; the same go out, so that they differ just where that counts as a
 * change. A source that comes or goes counts where the binding says so. Of an object that pods have in several versions, one counts that
 * no pod had before; versions that go with their pods do not. Pure.
 */
import type { Digests, RolloutSpec, RolloutStatus } from "../../api/rollout.ts";
import { digestsIn } from "../digest/digest.ts";
import { ABSENT, isPresent } from "../digest/presence.ts";
import type { Rekeyed } from "./affected.ts";

interface Compared {
  before: RolloutStatus | undefined;
  digests: Digests;
}

/** What does not count is taken into the baseline, or left as the rollout that is under way has it. */
export function countedOf(
  { before, digests }: Compared,
  used: Iterable<string>,
  restartOn: RolloutSpec["restartOn"] = [],
  rekeyed?: Rekeyed,
): Compared {
  if (before === undefined) return { before, digests };
  const [known, now] = [{ ...before.digests }, { ...digests }];
  const pending = before.pending?.digests ?? {};
  // In status they are by that key.
  const compared = rekeyed?.former ?? digests;
  for (const id of used) {
    const [was, is, goal] = [known[id], compared[id], pending[id]];
    if (goal !== undefined) {
      const kept = underWay(was, now[id], goal, restartOn);
      if (kept === undefined) delete now[id];
      else now[id] = kept;
    } else if (was !== undefined && !isCounted(was, is, restartOn)) {
      if (is !== undefined) known[id] = is;
      // The source has come without this key, which is new when it comes.
      else if (!isPresent(was)) delete known[id];
    }
  }
  return { before: { ...before, digests: known }, digests: now };
}

/** Whether it is no other value, or another one that counts. */
function isCounted(was: string, is: string | undefined, restartOn: NonNullable<RolloutSpec["restartOn"]>): boolean {
  if (was === is) return true;
  if (!isPresent(was)) return was === ABSENT && isPresent(is) && restartOn.includes("SourceCreated");
  if (is === undefined) return true;
  if (!isPresent(is)) return is === ABSENT && restartOn.includes("SourceDeleted");
  return !isWithin(is, [was]);
}

/** What a rollout that restarts for `goal` compares; undefined for what is gone, and is waited for. */
function underWay(
  was: string | undefined,
  is: string | undefined,
  goal: string,
  restartOn: NonNullable<RolloutSpec["restartOn"]>,
): string | undefined {
  if (is === undefined || is === goal) return is;
  if (!isPresent(is)) return is === ABSENT && restartOn.includes("SourceDeleted") ? is : undefined;
  if (!isPresent(goal)) return is;
  // The last pods with the version of before are going, or come late.
  const isOnItsWay = digestsIn(is).some((each) => digestsIn(goal).includes(each));
  return isOnItsWay && isWithin(is, [goal, ...(was === undefined ? [] : [was])]) ? goal : is;
}

function isWithin(digest: string, others: readonly string[]): boolean {
  const known = new Set(others.flatMap(digestsIn));
  return digestsIn(digest).every((each) => known.has(each));
}
