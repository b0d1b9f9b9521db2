/** A binding comes in; what its fields take of each source goes out. Pure, but for who reads templates. */
import { type Field, type SecretBinding, sourceName } from "../api/binding.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { Problem } from "../apimachinery/problem.ts";

/** The values that a template names; throws Problem for one that is none. */
export type ReadTemplate = (text: string) => readonly { readonly source: string; readonly path: readonly string[] }[];

/** One value of a source: a key of a Secret or ConfigMap, the path of a field of another object, or all of it. */
export interface Use {
  readonly source: string;
  readonly of: string;
}

/** All of a source, in place of one key. No key is called so. */
export const ALL_KEYS = "*";

/** What a field takes, each once. Nothing for a template that can't be read: the binding's condition says what is wrong with it. */
export function usesOf(binding: SecretBinding, field: Field, readTemplate: ReadTemplate): Use[] {
  const isObject = (name: string) => binding.spec.sources.some((each) => sourceName(each) === name && each.object);
  const { from, template } = field;
  if (from !== undefined) return [{ source: from.source, of: from.fieldPath ?? from.key ?? ALL_KEYS }];
  try {
    const uses = readTemplate(template).map(({ source, path }) => ({
      source,
      of: (isObject(source) ? String(pathOf(path)) : path.join(".")) || ALL_KEYS,
    }));
    return [...new Map(uses.map((use) => [`${use.source} ${use.of}`, use])).values()];
  } catch (error) {
    if (error instanceof Problem) return [];
    throw error;
  }
}

/** By source: what all fields take of it, in the order of names. */
export function usesBySource(binding: SecretBinding, readTemplate: ReadTemplate): Map<string, string[]> {
  const uses = binding.spec.targets.flatMap(({ fields }) =>
    fields.flatMap((field) => usesOf(binding, field, readTemplate)),
  );
  return new Map(
    binding.spec.sources.map((source) => {
      const name = sourceName(source);
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
