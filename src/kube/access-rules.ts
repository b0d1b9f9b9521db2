/** What an identity may do in a namespace comes in, as the API server lists it; whether that allows a verb on a kind or a name goes out. */
import type { Resource } from "../apimachinery/objects.ts";

/** The answer to a SelfSubjectRulesReview. It can't tell a right in the namespace from one in all of them. */
export interface AccessRules {
  /** Some authorizer can't list its rules: what is not among these may be allowed all the same. */
  incomplete: boolean;
  resourceRules: readonly ResourceRule[];
}

interface ResourceRule {
  verbs: readonly string[];
  apiGroups?: readonly string[];
  resources?: readonly string[];
  /** None for all names. */
  resourceNames?: readonly string[];
}

/** The names of a kind on which all of some verbs are allowed. */
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

/** The same for the same rights: the API server lists its rules in any order. */
export const rulesText = ({ incomplete, resourceRules }: AccessRules): string =>
  [String(incomplete), ...resourceRules.map((rule) => JSON.stringify(rule)).sort()].join("\n");
