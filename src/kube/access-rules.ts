/** Evaluates the rules that the API server lists for an identity in a namespace. */
import type { Resource } from "../apimachinery/objects.ts";

/**
 * The answer to a SelfSubjectRulesReview. It does not distinguish permissions in the namespace from those in all
 * namespaces.
 */
export interface AccessRules {
  /** An authorizer could not list its rules: verbs beyond these rules may be allowed. */
  incomplete: boolean;
  resourceRules: readonly ResourceRule[];
}

interface ResourceRule {
  verbs: readonly string[];
  apiGroups?: readonly string[];
  resources?: readonly string[];
  /** Absent or empty: all names. */
  resourceNames?: readonly string[];
}

/** The names of a kind on which all the given verbs are allowed. */
export function allowedNames(
  { resourceRules }: AccessRules,
  verbs: readonly string[],
  { group, plural }: Pick<Resource, "group" | "plural">,
): ReadonlySet<string> | "all" {
  const ofKind = resourceRules.filter(
    ({ apiGroups = [], resources = [] }) => hasOrAll(apiGroups, group) && hasOrAll(resources, plural),
  );
  return verbs.map((verb) => namesFor(ofKind, verb)).reduce(common, "all");
}

/** Whether the rules list the permission on the object, or without a name on all objects of the kind. */
export function isListed(
  rules: AccessRules,
  { verb, name, group, plural }: Pick<Resource, "group" | "plural"> & { verb: string; name: string | undefined },
): boolean {
  const names = allowedNames(rules, [verb], { group, plural });
  return names === "all" || (name !== undefined && names.has(name));
}

function namesFor(rules: readonly ResourceRule[], verb: string): ReadonlySet<string> | "all" {
  const names = new Set<string>();
  for (const { verbs, resourceNames = [] } of rules) {
    if (!hasOrAll(verbs, verb)) continue;
    if (resourceNames.length === 0) return "all";
    for (const name of resourceNames) names.add(name);
  }
  return names;
}

function common(a: ReadonlySet<string> | "all", b: ReadonlySet<string> | "all"): ReadonlySet<string> | "all" {
  if (a === "all") return b;
  return b === "all" ? a : new Set([...a].filter((name) => b.has(name)));
}

const hasOrAll = (list: readonly string[], value: string) => list.includes(value) || list.includes("*");

/** Equal texts for equal permissions: the API server lists its rules in any order. */
export const rulesText = ({ incomplete, resourceRules }: AccessRules): string =>
  [String(incomplete), ...resourceRules.map((rule) => JSON.stringify(rule)).sort()].join("\n");

/** The resource of a review, and its subresource, by a plural such as `pods/eviction`. */
export function partsOf(plural: string): { resource: string | undefined; subresource: string | undefined } {
  // A subresource may have a slash itself, such as userextras/inlay.dev/binding.
  const [resource, ...more] = plural.split("/");
  return { resource, subresource: more.length === 0 ? undefined : more.join("/") };
}
