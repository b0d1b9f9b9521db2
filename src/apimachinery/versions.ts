/** Compares version numbers. Pure. */

/** The precedence of Semantic Versioning 2: 0.10.0 comes after 0.9.0, and a release after its pre-releases. */
export function compareVersions(a: string, b: string): number {
  const [[release, former], [other, latter]] = [partsOf(a), partsOf(b)];
  const order = release.localeCompare(other, "en", { numeric: true });
  if (order !== 0 || former === undefined || latter === undefined)
    return order || Number(former === undefined) - Number(latter === undefined);
  for (const [at, one] of former.entries()) {
    const two = latter[at];
    if (two === undefined) return 1;
    const [isNumber, isOtherNumber] = [/^\d+$/.test(one), /^\d+$/.test(two)];
    if (isNumber && isOtherNumber && one !== two) return Number(one) - Number(two);
    if (isNumber !== isOtherNumber) return isNumber ? -1 : 1;
    if (one !== two) return one < two ? -1 : 1;
  }
  return former.length - latter.length;
}

/** The release, and the identifiers of a pre-release. */
function partsOf(version: string): [string, string[] | undefined] {
  const [release = "", ...rest] = version.split("-");
  return [release, rest.length === 0 ? undefined : rest.join("-").split(".")];
}
