/** How large the scale cases of a run are: `npm run test:scale` runs them in full, `npm test` at a tenth. */

const factor = Number(process.env["INLAY_TEST_SCALE"] ?? "0.1");

/** A number of objects at this run's scale, and at least `least`, below which a case would no longer show what it is for. */
export function scaled(full: number, least = 1): number {
  return Math.max(least, Math.ceil(full * factor));
}
