/** The size of the scale cases of a run: `npm run test:scale` runs them in full, `npm test` at a tenth. */

const factor = Number(process.env["INLAY_TEST_SCALE"] ?? "0.1");

/** A number of objects at this run's scale, and at least `least`, which the case needs to show anything. */
export function scaled(full: number, least = 1): number {
  return Math.max(least, Math.ceil(full * factor));
}

/** A number of objects for a case whose tenth would take too long for `npm test`: `full` only at full scale, `small` otherwise. */
export function fullOr(full: number, small: number): number {
  return factor >= 1 ? full : small;
}
