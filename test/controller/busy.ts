/** Somebody who keeps doing something beside a test: what he does comes in, and what the test comes to meanwhile goes out. */
import { setTimeout as sleep } from "node:timers/promises";

/** Does `work` again and again, with pauses, until `act` has ended. Throws what either of them throws. */
export async function whileBusy<T>(work: () => Promise<unknown>, pauseMs: number, act: () => Promise<T>): Promise<T> {
  let isOver = false;
  const busy = (async () => {
    while (!isOver) {
      await work();
      await sleep(pauseMs);
    }
  })();
  // Until the end of `act`, nobody else looks at it.
  busy.catch(() => {});
  try {
    return await act();
  } finally {
    isOver = true;
    await busy;
  }
}
