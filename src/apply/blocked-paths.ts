/**
 * Finds by dry runs which paths an object requires: the API server does not say which of several it refuses to remove.
 */

/** A target has up to 64 fields. To find one required field among them takes a dozen dry runs. */
const MAX_DRY_RUNS = 256;

/**
 * The paths to keep so that as many others as possible can be removed together. `canGo` says whether the API server
 * would accept the removal of exactly these paths. If one of several must stay, the last one stays. After 256 dry runs,
 * all paths stay that are not accepted yet. Throws what `canGo` throws.
 */
export async function blockedPaths(
  paths: readonly string[],
  canGo: (some: readonly string[]) => Promise<boolean>,
): Promise<string[]> {
  let dryRuns = 0;
  let gone: readonly string[] = [];
  const accepts = async (some: readonly string[]) => dryRuns++ < MAX_DRY_RUNS && (await canGo([...gone, ...some]));
  /** Returns the paths of `some` that stay. */
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
  // A single path is already known to be refused. If not even an unchanged object is accepted, dry runs show nothing.
  if (paths.length === 1 || !(await accepts([]))) return [...paths];
  let left = await takeHalves(paths);
  // The removal of others may permit the removal of a path that was refused before.
  for (let before = paths.length; left.length > 0 && left.length < before; ) {
    before = left.length;
    left = (await take(left.toReversed())).toReversed();
  }
  return [...left];
}
