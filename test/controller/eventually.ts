/** An assertion that will hold comes in; it is tried until it does. The cluster settles by itself, but not at once. */
import { setTimeout as sleep } from "node:timers/promises";

/** Most of what is waited for comes at once; what does not is not worth the API server's time. */
const PAUSES_MS = { first: 25, most: 150, growth: 1.1 };
/** Far more than anything takes, also on a machine with much else to do: it is waited for only where a test fails. */
const WITHIN_MS = 30_000;

/** Returns what `check` returned when it passed; past the time, throws what it threw last. */
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
