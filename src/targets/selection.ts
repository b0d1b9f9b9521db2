/**
 * Defines the selection of a target with selectors: kind, label selectors in the API server's syntax, names,
 * namespaces. Pure.
 */
import type { Target } from "../api/binding.ts";
import type { Where } from "../api/installation.ts";
import { isGlob, nameMatcher } from "../apimachinery/glob.ts";
import { selectorText } from "../apimachinery/label-selector.ts";
import type { Resource } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";

/** Names are globs. `names` is undefined for any name. */
export interface SelectionCriteria {
  names: readonly string[] | undefined;
  exceptNames?: readonly string[] | undefined;
  labels: string;
}

export interface Selection {
  resource: Resource;
  /** One object of that name in each namespace, or all that match. */
  objects: string | SelectionCriteria;
  /** Listed namespaces (undefined for a cluster-scoped kind), or all that match. */
  namespaces: readonly (string | undefined)[] | SelectionCriteria;
  /** Why the installation allows no writes there. */
  refusedIn(where: Where): Problem | undefined;
}

type Selector = NonNullable<Target["selector"]>;

/** Throws Problem("InvalidBinding") if namespaces are selected for a cluster-scoped kind. */
export function selectionOf(target: Target, resource: Resource, own: string): Omit<Selection, "refusedIn"> {
  const { namespaceSelector } = target;
  if (!resource.namespaced && namespaceSelector !== undefined) {
    const message = `${target.kind} is cluster-scoped; remove namespaceSelector`;
    throw new Problem("InvalidBinding", message);
  }
  const objects = target.name ?? choiceOf(target.selector);
  if (!resource.namespaced) return { resource, objects, namespaces: [undefined] };
  if (namespaceSelector === undefined) return { resource, objects, namespaces: [target.namespace ?? own] };
  const namespaces = choiceOf(namespaceSelector);
  return { resource, objects, namespaces: listedIn(namespaces) ?? namespaces };
}

/** The names of a selection without wildcards and labels. It needs no list of namespaces. */
function listedIn({ names, exceptNames, labels }: SelectionCriteria): string[] | undefined {
  if (labels !== "" || names === undefined || names.some(isGlob)) return undefined;
  return [...new Set(names)].filter((name) => nameMatcher(undefined, exceptNames)(name));
}

export function choiceOf({ names, exceptNames, ...selector }: Selector): SelectionCriteria {
  return { names, ...(exceptNames && { exceptNames }), labels: selectorText(selector) };
}
