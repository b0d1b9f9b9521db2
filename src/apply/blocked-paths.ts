/** Finds out which paths an object can't be without, by dry runs: the API server does not say which of them it refuses to lose. */

/** A target has up to 64 fields; to find the one of them that has to stay takes a dozen dry runs. */
const MAX_DRY_RUNS = 256;

/**
 * Of paths that can't all go, those that stay, so that as many others as possible go together. `canGo` says whether the API
 * server would accept the removal of these and no others. Where one of several has to stay, it is the last. After 256 dry
 * runs, all paths stay that were not accepted by then. Throws what `canGo` throws.
 */
export async function blockedPaths(
  paths: readonly string[],
  canGo: (some: readonly string[]) => Promise<boolean>,
): Promise<string[]> {
  let dryRuns = 0;
  let gone: readonly string[] = [];
  const accepts = async (some: readonly string[]) => dryRuns++ < MAX_DRY_RUNS && (await canGo([...gone, ...some]));
  /** Returns those of `some` that stay. */
  const take = async (some: readonly string[]): Promise<readonly string[]> => {
    if (await accepts(some)) {
      gone = [...gone, ...some];
      return [];
    }
    return some.length === 1 ? some : takeHalves(some);
  };
  const takeHalves = async (some: readonly string[]) => {
    const middle = Math.ceil(some.length / 2);
    return [...(await take(some.slice(0, middle))), ...(await take(some.slice(middle)))];
  };
  // One path has been refused by itself; and where no change at all is accepted, there is nothing to find out.
  if (paths.length === 1 || !(await accepts([]))) return [...paths];
  let left = await takeHalves(paths);
  // What could not go before others did may be able to now.
  for (let before = paths.length; left.length > 0 && left.length < before; ) {
    before = left.length;
    left = (await take(left.toReversed())).toReversed();
  }
  return [...left];
}
