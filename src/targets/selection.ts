/**
 * A target that selects comes in; what to watch for it goes out: the kind, label selectors as the API server takes them,
 * names, and the namespaces. Pure.
 */
import type { Target } from "../api/binding.ts";
import type { Where } from "../api/installation.ts";
import { isGlob } from "../apimachinery/glob.ts";
import { selectorText } from "../apimachinery/label-selector.ts";
import type { Resource } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";

/** Names are globs; undefined for any. */
export interface Choice {
  names: readonly string[] | undefined;
  labels: string;
}

export interface Selection {
  resource: Resource;
  /** One object of that name in each of the namespaces, or all that match. */
  objects: string | Choice;
  /** Those that are listed (the one of a kind of the cluster is undefined), or all that match. */
  namespaces: readonly (string | undefined)[] | Choice;
  /** Why the installation lets nothing of it be written there. */
  refusedIn(where: Where): Problem | undefined;
}

type Selector = NonNullable<Target["selector"]>;

/** Throws Problem("InvalidBinding") when namespaces are selected for a kind that has none. */
export function selectionOf(target: Target, resource: Resource, own: string): Omit<Selection, "refusedIn"> {
  const { namespaceSelector } = target;
  if (!resource.namespaced && namespaceSelector !== undefined) {
    throw new Problem(
      "InvalidBinding",
      `${target.kind} belongs to the cluster and is in no namespace; leave namespaceSelector out`,
    );
  }
  const objects = target.name ?? choiceOf(target.selector);
  if (!resource.namespaced) return { resource, objects, namespaces: [undefined] };
  if (namespaceSelector === undefined) return { resource, objects, namespaces: [target.namespace ?? own] };
  const namespaces = choiceOf(namespaceSelector);
  const isListed = namespaces.labels === "" && namespaces.names?.every((name) => !isGlob(name));
  return { resource, objects, namespaces: isListed ? [...new Set(namespaces.names)] : namespaces };
}

export function choiceOf({ names, ...selector }: Selector): Choice {
  return { names, labels: selectorText(selector) };
}
