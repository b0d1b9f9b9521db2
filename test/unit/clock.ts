/** Time that a test moves by itself: timers of `node:timers` and `node:timers/promises`, and the date. */
import { syncBuiltinESMExports } from "node:module";
import { mock } from "node:test";

export interface Clock {
  /** Lets the time pass, fires what falls due, and lets everything run that follows from it. */
  pass(ms: number): Promise<void>;
}

/** Stops time around each test of a `describe`. */
export function fakeClock(): Clock {
  beforeEach(() => {
    mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: Date.UTC(2026, 0, 1) });
    // What was imported by name must see them too.
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

/** Lets everything run that waits for nothing but promises. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}
