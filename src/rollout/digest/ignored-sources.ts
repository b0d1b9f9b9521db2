/**
 * What was read for a binding that was made of Reloader's annotations comes in; it goes out without the Secrets and ConfigMaps that their
 * own annotations or labels leave out. The binding names such a source while it is new, until it is corrected. Pure.
 */
import type { SecretBinding } from "../../api/binding.ts";
import { claimsToBeGenerated, type ReloaderView } from "../../api/reloader.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { LiveSource } from "../../transform/live-source.ts";

type Sources = ReadonlyMap<string, LiveSource | Problem>;

export function withoutIgnored<T extends { readonly sources: Sources }>(
  binding: SecretBinding,
  read: T,
  view: ReloaderView,
): T {
  if (!claimsToBeGenerated(binding)) return read;
  return { ...read, sources: new Map([...read.sources].filter(([, source]) => !isIgnored(source, view))) };
}

/** The versions of a SecretProviderClass are of many objects, whose annotations don't count. */
function isIgnored(source: LiveSource | Problem, view: ReloaderView): boolean {
  if (source instanceof Problem || source.kind !== "data" || source.isVersions) return false;
  return view.markOfSource(source.annotations.reveal(), source.labels.reveal()) === "ignore";
}
