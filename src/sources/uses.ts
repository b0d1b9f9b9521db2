/** Finds which keys of each source the fields of a binding use. Pure. */
import { type Field, fieldsOfTarget, type SecretBinding, sourcesIn } from "../api/binding.ts";
import { FieldPath, keySegment } from "../apimachinery/field-path.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import type { KeyFilter } from "../transform/key-filter.ts";
import { parseSources } from "./registry.ts";
import type { ParsedSource } from "./source.ts";

/** The values that a template names. Throws Problem for a malformed template. */
export type ReadTemplate = (text: string) => readonly { readonly source: string; readonly path: readonly string[] }[];

/**
 * The used part of a source: a key of a Secret or ConfigMap, the path of a field of another object, or all of it. For all keys that pass a
 * filter: ALL_KEYS followed by the filter, so that the use itself says which keys it includes, in status too.
 */
interface SourceUse {
  readonly source: string;
  readonly of: string;
}

/** All of a source, instead of one key. No key has this name. */
export const ALL_KEYS = "*";

/** The same text for equivalent filters. */
function allKeysOf({ include, exclude }: KeyFilter): string {
  if (include === undefined && exclude === undefined) return ALL_KEYS;
  const [included, excluded] = [include, exclude].map((each) => each && [...new Set(each)].sort());
  return `${ALL_KEYS}${JSON.stringify({ include: included, exclude: excluded })}`;
}

/** The filter of a use of all keys; undefined for a use of one key. */
export function filterIn(use: string): KeyFilter | undefined {
  if (use === ALL_KEYS) return {};
  if (!use.startsWith(`${ALL_KEYS}{`)) return undefined;
  try {
    const filter = JSON.parse(use.slice(ALL_KEYS.length)) as KeyFilter;
    const texts: unknown[] = [...(filter.include ?? []), ...(filter.exclude ?? [])];
    // A field may name any text as its key, even one that looks like a filter.
    return allKeysOf(filter) === use && texts.every((each) => typeof each === "string") ? filter : undefined;
  } catch {
    return undefined;
  }
}

/** `bucket/accessKeyID`, or only the source for all of it. For messages. */
export function describeUse({ source, of }: SourceUse): string {
  if (of === ALL_KEYS) return source;
  return filterIn(of) === undefined ? `${source}/${of}` : `${source} (${useInWords(of)})`;
}

/** For messages. */
export function useInWords(use: string): string {
  const filter = filterIn(use);
  if (filter === undefined) return use;
  const [included, excluded] = [filter.include, filter.exclude].map((each) => each?.join(" or "));
  if (included === undefined) return excluded === undefined ? "all of it" : `keys that do not match ${excluded}`;
  return `keys that match ${included}${excluded === undefined ? "" : `, but not ${excluded}`}`;
}

/** What a field uses, without duplicates. Empty for a malformed template: the binding's condition reports it. */
export function usesOf(sources: readonly ParsedSource[], field: Field, readTemplate: ReadTemplate): SourceUse[] {
  const hasFields = (name: string) => sources.some((each) => each.name === name && each.addressedBy === "fieldPath");
  const { from, template } = field;
  if (from !== undefined)
    return sourcesIn(from).map((source) => ({ source, of: from.fieldPath ?? from.key ?? allKeysOf(from) }));
  const uses = attemptSync(() =>
    readTemplate(template).map(({ source, path }) => ({
      source,
      of: (hasFields(source) ? String(pathOf(path)) : path.join(".")) || ALL_KEYS,
    })),
  );
  if (uses instanceof Problem) return [];
  return [...new Map(uses.map((use) => [`${use.source} ${use.of}`, use])).values()];
}

/** What all fields use, by source and sorted by name. */
export function usesBySource(binding: SecretBinding, readTemplate: ReadTemplate): Map<string, string[]> {
  const sources = parseSources(binding);
  const uses = binding.spec.targets.flatMap((target) =>
    fieldsOfTarget(target).flatMap((field) => usesOf(sources, field, readTemplate)),
  );
  return new Map(
    sources.map(({ name }) => {
      const of = uses.filter((use) => use.source === name).map((use) => use.of);
      return [name, [...new Set(of)].sort()] as const;
    }),
  );
}

/** The keys as a path, up to the first number: a number may be an index or a key. */
function pathOf(keys: readonly string[]): FieldPath {
  const number = keys.findIndex((key) => /^\d+$/.test(key));
  return new FieldPath(keys.slice(0, number < 0 ? undefined : number).map(keySegment));
}
