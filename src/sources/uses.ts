/** Which keys of each source the fields of a binding use. Pure. */
import type { Field, SecretBinding } from "../api/binding.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { parseSources } from "./registry.ts";
import type { ParsedSource } from "./source.ts";

/** The values that a template names; throws Problem for one that is none. */
export type ReadTemplate = (text: string) => readonly { readonly source: string; readonly path: readonly string[] }[];

/** One value of a source: a key of a Secret or ConfigMap, the path of a field of another object, or all of it. */
interface SourceUse {
  readonly source: string;
  readonly of: string;
}

/** All of a source, in place of one key. No key is called so. */
export const ALL_KEYS = "*";

/** What a field takes, each once. Nothing for a template that can't be read: the binding's condition says what is wrong with it. */
export function usesOf(sources: readonly ParsedSource[], field: Field, readTemplate: ReadTemplate): SourceUse[] {
  const hasFields = (name: string) => sources.some((each) => each.name === name && each.addressedBy === "fieldPath");
  const { from, template } = field;
  if (from !== undefined) return [{ source: from.source, of: from.fieldPath ?? from.key ?? ALL_KEYS }];
  const uses = attemptSync(() =>
    readTemplate(template).map(({ source, path }) => ({
      source,
      of: (hasFields(source) ? String(pathOf(path)) : path.join(".")) || ALL_KEYS,
    })),
  );
  if (uses instanceof Problem) return [];
  return [...new Map(uses.map((use) => [`${use.source} ${use.of}`, use])).values()];
}

/** By source: what all fields take of it, in the order of names. */
export function usesBySource(binding: SecretBinding, readTemplate: ReadTemplate): Map<string, string[]> {
  const sources = parseSources(binding);
  const uses = binding.spec.targets.flatMap(({ fields }) =>
    fields.flatMap((field) => usesOf(sources, field, readTemplate)),
  );
  return new Map(
    sources.map(({ name }) => {
      const of = uses.filter((use) => use.source === name).map((use) => use.of);
      return [name, [...new Set(of)].sort()] as const;
    }),
  );
}

/** As far as it goes by names: a number is a place in a list, or a key, as what is there has it. */
function pathOf(keys: readonly string[]): FieldPath {
  const number = keys.findIndex((key) => /^\d+$/.test(key));
  return new FieldPath(keys.slice(0, number < 0 ? undefined : number).map((key) => ({ kind: "key", key })));
}
