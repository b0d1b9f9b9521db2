/** The fields of one target and the sources as they were read come in; every value to write goes out, or one Problem. */
import type { Field } from "../model/binding.ts";
import { FieldPath } from "../model/field-path.ts";
import type { JsonValue } from "../model/kube-object.ts";
import type { Plan } from "../model/plan.ts";
import { Problem } from "../model/problem.ts";
import type { SecretValue } from "../model/secret-value.ts";
import type { LiveSource } from "../model/source-value.ts";
import { assertWritablePath } from "../model/writable.ts";
import { readField, readText } from "./read.ts";
import { compileTemplate, type Reference, unknownSource } from "./template.ts";

/** Makes one field's value of the sources it names, all of them read. */
interface Recipe {
  readonly path: FieldPath;
  readonly references: readonly Pick<Reference, "source">[];
  value(sources: ReadonlyMap<string, LiveSource>): SecretValue<JsonValue>;
}

/**
 * Plans one target. A source that could not be read comes as its Problem, and is rethrown if a field needs it. Throws
 * the first Problem: what `checkFields` throws, before any source is looked at, then KeyNotFound, NotUtf8, TypeMismatch
 * and InvalidBinding (a key of an object, a fieldPath of a Secret).
 */
export function planTarget(fields: readonly Field[], sources: ReadonlyMap<string, LiveSource | Problem>): Plan {
  const recipes = checkFields(fields, sources.keys());
  return {
    fields: recipes.map(({ path, references, value }) => {
      const read = new Map<string, LiveSource>();
      for (const { source: name } of references) {
        const source = sources.get(name);
        if (source instanceof Problem) throw source;
        if (source !== undefined) read.set(name, source);
      }
      return { path, value: about(path, () => value(read)) };
    }),
  };
}

/**
 * Finds what is wrong with a target's fields by themselves. Throws Problem: InvalidPath, ForbiddenPath, InvalidTemplate,
 * or InvalidBinding (overlapping paths, a source that the binding doesn't have).
 */
export function checkFields(fields: readonly Field[], sourceNames: Iterable<string>): readonly Recipe[] {
  const names = [...sourceNames];
  const recipes = fields.map((field) => {
    const path = FieldPath.parse(field.path);
    assertWritablePath(path);
    if (!path.isPlain) {
      throw new Problem("InvalidPath", `${path} goes through a list; elements of lists can't be written yet`);
    }
    return about(path, () => recipeOf(field, path, names));
  });
  recipes.forEach(({ path }, position) => {
    for (const { path: other } of recipes.slice(0, position)) {
      if (path.startsWith(other) || other.startsWith(path)) {
        throw new Problem("InvalidBinding", `${other} and ${path} overlap; write each field once`);
      }
    }
  });
  return recipes;
}

function recipeOf(field: Field, path: FieldPath, names: readonly string[]): Recipe {
  const recipe = field.from === undefined ? fromTemplate(field.template) : fromSource(field.from);
  for (const reference of recipe.references) {
    if (!names.includes(reference.source)) throw new Problem("InvalidBinding", unknownSource(reference, names));
  }
  return { path, ...recipe };
}

function fromTemplate(text: string) {
  const template = compileTemplate(text);
  return {
    references: template.references,
    value: (sources: ReadonlyMap<string, LiveSource>) => template.render(sources),
  };
}

function fromSource(from: NonNullable<Field["from"]>) {
  const fieldPath = from.fieldPath === undefined ? undefined : FieldPath.parse(from.fieldPath);
  const value = (sources: ReadonlyMap<string, LiveSource>): SecretValue<JsonValue> => {
    const source = sources.get(from.source) as LiveSource;
    if (source.kind === "data") {
      if (from.key !== undefined) return readText(source, from.key);
      throw new Problem(
        "InvalidBinding",
        `${source.description} has keys and no fields; write key instead of fieldPath`,
      );
    }
    if (fieldPath !== undefined) return readField(source, fieldPath);
    throw new Problem("InvalidBinding", `${source.description} has fields and no keys; write fieldPath instead of key`);
  };
  return { references: [{ source: from.source, path: [] }], value };
}

/** Says of a Problem which field of the target it is about. */
function about<T>(path: FieldPath, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw error instanceof Problem ? new Problem(error.reason, `${path}: ${error.message}`) : error;
  }
}
