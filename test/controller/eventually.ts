/** Repeats an assertion until it passes, because the cluster needs time. */
import { setTimeout as sleep } from "node:timers/promises";

/** The pause between attempts: most results arrive at once, and faster polling would load the API server. */
const PAUSES_MS = { first: 25, most: 150, growth: 1.1 };
/** Far more time than any check needs on a busy machine. Only a failing test waits that long. */
const WITHIN_MS = 30_000;

/** Returns the result of `check` when it passes. After the time limit, throws its last error. */
export async function eventually<T>(check: () => T | Promise<T>, withinMs = WITHIN_MS): Promise<T> {
  const end = Date.now() + withinMs;
  let pause = PAUSES_MS.first;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
      await sleep(pause);
      pause = Math.min(pause * PAUSES_MS.growth, PAUSES_MS.most);
    }
  }
}
