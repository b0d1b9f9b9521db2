/**
 * Removes sources that don't count from what was read for a binding that was generated from annotations: Secrets and ConfigMaps
 * with Reloader's ignore annotation, which the binding names until it is corrected, and sources that the account may not read,
 * so that the workload still restarts for the others. Pure.
 */
import type { SecretBinding } from "../../api/binding.ts";
import { claimsToBeGenerated, type ReloaderView } from "../../api/reloader.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { LiveSource } from "../../transform/live-source.ts";

type Sources = ReadonlyMap<string, LiveSource | Problem>;

/** `unread` is why a source was removed that the account may not read. */
export function withoutIgnored<T extends { readonly sources: Sources }>(
  binding: SecretBinding,
  read: T,
  view: ReloaderView,
): T & { unread?: Problem } {
  if (!claimsToBeGenerated(binding)) return read;
  const counted = [...read.sources].filter(([, source]) => !isIgnored(source, view));
  const unread = counted.flatMap(([, source]) => (isForbidden(source) ? [source] : []))[0];
  const sources = new Map(counted.filter(([, source]) => !isForbidden(source)));
  return { ...read, sources, ...(unread !== undefined && { unread }) };
}

const isForbidden = (source: LiveSource | Problem): source is Problem =>
  source instanceof Problem && source.reason === "Forbidden";

/** The versions of a SecretProviderClass belong to many objects, whose annotations don't count. */
function isIgnored(source: LiveSource | Problem, view: ReloaderView): boolean {
  if (source instanceof Problem || source.kind !== "data" || source.isVersions) return false;
  return view.markOfSource(source.annotations.reveal(), source.labels.reveal()) === "ignore";
}
