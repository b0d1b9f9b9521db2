/** Decides which objects of a kind are claims of a composition, and in which namespaces. Pure. */
import type { CompositionSpec } from "../api/composition.ts";
import { CREATED_BY } from "../api/manifest.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import { matchesLabels } from "../apimachinery/label-selector.ts";
import type { ObjectMeta } from "../apimachinery/objects.ts";

type Texts = Readonly<Record<string, string>>;

/** The metadata that selectors compare. */
type Marks = Readonly<Pick<ObjectMeta, "labels" | "annotations">>;

/** What is `unknown` counts as matching. */
export type ClaimMatcher = (name: string, marks: Marks | "unknown" | undefined) => boolean;
type NamespaceMatcher = (name: string, labels: Texts | "unknown" | undefined) => boolean;

export function claimMatcher(selector: CompositionSpec["for"]["selector"] = {}): ClaimMatcher {
  const { names, exceptNames, annotations = {}, ...labels } = selector;
  const isNamed = nameMatcher(names, exceptNames);
  const values = Object.entries(annotations).map(([key, value]) => [key, nameMatcher([value])] as const);
  return (name, marks = {}) => {
    if (!isNamed(name) || marks === "unknown") return isNamed(name);
    const { labels: hasLabels = {}, annotations: has = {} } = marks;
    return (
      // Prevents an endless loop: an object that a binding created could be a claim of the composition that composed the binding.
      hasLabels[CREATED_BY] === undefined &&
      matchesLabels(labels, hasLabels) &&
      values.every(([key, matches]) => Object.hasOwn(has, key) && matches(has[key] ?? ""))
    );
  };
}

export function namespaceMatcher(selector: CompositionSpec["for"]["namespaceSelector"] = {}): NamespaceMatcher {
  const { names, exceptNames, ...labels } = selector;
  const isNamed = nameMatcher(names, exceptNames);
  return (name, has = {}) => isNamed(name) && (has === "unknown" || matchesLabels(labels, has));
}
