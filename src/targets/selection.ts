/** What a target with selectors selects: the kind, label selectors in the API server's syntax, names, namespaces. Pure. */
import type { Target } from "../api/binding.ts";
import type { Where } from "../api/installation.ts";
import { isGlob, nameMatcher } from "../apimachinery/glob.ts";
import { selectorText } from "../apimachinery/label-selector.ts";
import type { Resource } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";

/** Names are globs; `names` is undefined for any. */
export interface SelectionCriteria {
  names: readonly string[] | undefined;
  exceptNames?: readonly string[] | undefined;
  labels: string;
}

export interface Selection {
  resource: Resource;
  /** One object of that name in each of the namespaces, or all that match. */
  objects: string | SelectionCriteria;
  /** Those that are listed (the one of a kind of the cluster is undefined), or all that match. */
  namespaces: readonly (string | undefined)[] | SelectionCriteria;
  /** Why the installation lets nothing of it be written there. */
  refusedIn(where: Where): Problem | undefined;
}

type Selector = NonNullable<Target["selector"]>;

/** Throws Problem("InvalidBinding") when namespaces are selected for a kind that has none. */
export function selectionOf(target: Target, resource: Resource, own: string): Omit<Selection, "refusedIn"> {
  const { namespaceSelector } = target;
  if (!resource.namespaced && namespaceSelector !== undefined) {
    const message = `${target.kind} belongs to the cluster and is in no namespace; leave namespaceSelector out`;
    throw new Problem("InvalidBinding", message);
  }
  const objects = target.name ?? choiceOf(target.selector);
  if (!resource.namespaced) return { resource, objects, namespaces: [undefined] };
  if (namespaceSelector === undefined) return { resource, objects, namespaces: [target.namespace ?? own] };
  const namespaces = choiceOf(namespaceSelector);
  return { resource, objects, namespaces: listedIn(namespaces) ?? namespaces };
}

/** What is selected by names alone, without a wildcard: nothing has to be listed for it. */
function listedIn({ names, exceptNames, labels }: SelectionCriteria): string[] | undefined {
  if (labels !== "" || names === undefined || names.some(isGlob)) return undefined;
  return [...new Set(names)].filter((name) => nameMatcher(undefined, exceptNames)(name));
}

export function choiceOf({ names, exceptNames, ...selector }: Selector): SelectionCriteria {
  return { names, ...(exceptNames && { exceptNames }), labels: selectorText(selector) };
}
