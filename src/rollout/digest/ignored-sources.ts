/**
 * Removes Secrets and ConfigMaps that Reloader's ignore annotation excludes from what was read for a generated binding. The
 * binding names such a source while the annotation is new, until the binding is corrected. Pure.
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

/** The versions of a SecretProviderClass belong to many objects, whose annotations don't count. */
function isIgnored(source: LiveSource | Problem, view: ReloaderView): boolean {
  if (source instanceof Problem || source.kind !== "data" || source.isVersions) return false;
  return view.markOfSource(source.annotations.reveal(), source.labels.reveal()) === "ignore";
}
