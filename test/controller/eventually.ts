/** An assertion that will hold comes in; it is tried until it does. The cluster settles by itself, but not at once. */
import { setTimeout as sleep } from "node:timers/promises";

const PAUSE_MS = 25;

/** Returns what `check` returned when it passed; past the time, throws what it threw last. */
export async function eventually<T>(check: () => T | Promise<T>, withinMs = 15_000): Promise<T> {
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
