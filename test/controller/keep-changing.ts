/** Changes a value faster than anything settles. */
import { setTimeout as sleep } from "node:timers/promises";

const EVERY_MS = 300;

/** Calls `change` every 300 ms for a time. */
export async function keepChanging(change: () => Promise<unknown>, forMs: number): Promise<void> {
  for (const from = performance.now(); performance.now() - from < forMs; ) {
    await change();
    await sleep(EVERY_MS);
  }
}
