/** Repeats some work beside a test until the test is done. */
import { setTimeout as sleep } from "node:timers/promises";

/** Calls `work` repeatedly, with pauses, until `act` has ended. Throws the error of either of them. */
export async function whileBusy<T>(work: () => Promise<unknown>, pauseMs: number, act: () => Promise<T>): Promise<T> {
  let isOver = false;
  const busy = (async () => {
    while (!isOver) {
      await work();
      await sleep(pauseMs);
    }
  })();
  // It is awaited only after `act`; until then, a rejection must not count as unhandled.
  busy.catch(() => {});
  try {
    return await act();
  } finally {
    isOver = true;
    await busy;
  }
}
