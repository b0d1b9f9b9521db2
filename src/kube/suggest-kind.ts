/** Advises how to correct a kind that the cluster does not serve under the given name, from the kinds that it serves. Pure. */
import { firstOf } from "../apimachinery/name-list.ts";
import { apiVersionOf, parseApiVersion, type Resource } from "../apimachinery/objects.ts";
import { similarName } from "../apimachinery/suggest-names.ts";

export type ServedKind = Pick<Resource, "group" | "version" | "kind" | "plural">;

/** Whether a kind is named by its kind or by its plural. */
export type KindName = "kind" | "plural";

const MAX_VERSIONS = 3;
/** If nothing shows what was meant. */
export const INSTALL_KIND = "install its CRD, or correct apiVersion or kind";
/** The list of all kinds is newer than the answer that lacks the kind. */
const NOT_YET = "its CRD is new and not served yet; wait some seconds, or try again";

/**
 * In this order: that it is not served yet; the kind in other letters, or its plural for its kind; the kind in another group
 * or version; a kind with a similar name in this version.
 */
export function kindAdvice(apiVersion: string, wanted: string, by: KindName, served: readonly ServedKind[]): string {
  const isHere = (each: ServedKind) => apiVersionOf(each) === apiVersion;
  const text = wanted.toLowerCase();
  const same = served.filter(({ kind, plural }) => kind.toLowerCase() === text || plural.toLowerCase() === text);
  const here = same.find(isHere);
  if (here?.[by] === wanted) return NOT_YET;
  if (here !== undefined) return `did you mean ${here[by]}?`;
  const { group } = parseApiVersion(apiVersion);
  const [first] = same.toSorted((a, b) => Number(b.group === group) - Number(a.group === group));
  if (first !== undefined) {
    const places = same.filter((each) => each[by] === first[by]).map(apiVersionOf);
    const inGroup = places.filter((place) => parseApiVersion(place).group === group);
    return `${first[by]} is served in ${firstOf(inGroup.length > 0 ? inGroup : places, MAX_VERSIONS)}; correct apiVersion`;
  }
  const near = similarName(
    wanted,
    served.filter(isHere).flatMap(({ kind, plural }) => [kind, plural]),
  );
  const meant = served.find((each) => isHere(each) && (each.kind === near || each.plural === near));
  return meant === undefined ? INSTALL_KIND : `did you mean ${meant[by]}?`;
}
