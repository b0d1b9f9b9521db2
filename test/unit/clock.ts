/** A clock that a test moves: timers of `node:timers` and `node:timers/promises`, and the date. */
import { syncBuiltinESMExports } from "node:module";
import { mock } from "node:test";

export interface Clock {
  /** Lets the time pass, fires due timers, and runs everything that follows. */
  pass(ms: number): Promise<void>;
}

/** Stops time around each test of a `describe`. */
export function fakeClock(): Clock {
  beforeEach(() => {
    mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: Date.UTC(2026, 0, 1) });
    // Functions that were imported by name must see the fake timers too.
    syncBuiltinESMExports();
  });
  afterEach(() => {
    mock.timers.reset();
    syncBuiltinESMExports();
  });
  return {
    async pass(ms) {
      await settled();
      mock.timers.tick(ms);
      await settled();
    },
  };
}

/** Runs everything that waits for promises only. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Runs what takes more turns of the event loop on a busy machine, until it is done or the test has no time left. */
export async function settledWhen(isDone: () => boolean): Promise<void> {
  const end = performance.now() + 60_000;
  while (!isDone() && performance.now() < end) await settled();
}
