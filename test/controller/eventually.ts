/** An assertion that will hold comes in; it is tried until it does. The cluster settles by itself, but not at once. */
import { setTimeout as sleep } from "node:timers/promises";

const PAUSE_MS = 25;
/** Far more than anything takes, also on a machine with much else to do: it is waited for only where a test fails. */
const WITHIN_MS = 30_000;

/** Returns what `check` returned when it passed; past the time, throws what it threw last. */
export async function eventually<T>(check: () => T | Promise<T>, withinMs = WITHIN_MS): Promise<T> {
  const end = Date.now() + withinMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
      await sleep(PAUSE_MS);
    }
  }
}
