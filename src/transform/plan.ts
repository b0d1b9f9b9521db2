/** The fields of one target and the sources as they were read come in; every value to write goes out, or one Problem. */
import type { Field } from "../model/binding.ts";
import { FieldPath } from "../model/field-path.ts";
import { parsePointer, pointAt } from "../model/json-pointer.ts";
import type { JsonValue } from "../model/kube-object.ts";
import type { LeftOut, Plan, PlannedField } from "../model/plan.ts";
import { MissingValue, Problem } from "../model/problem.ts";
import type { SecretValue } from "../model/secret-value.ts";
import type { LiveSource } from "../model/source-value.ts";
import { assertWritablePath } from "../model/writable.ts";
import { convert, notNull } from "./convert.ts";
import { readDocument } from "./document.ts";
import { keyOf, present, readBytes, readField } from "./read.ts";
import { compileTemplate } from "./template.ts";
import { type Reference, unknownSource } from "./template-value.ts";

/** Makes one field's value of the sources it names, all of them read. */
interface Recipe {
  readonly path: FieldPath;
  readonly isBytes: boolean;
  readonly references: readonly Pick<Reference, "source">[];
  value(sources: ReadonlyMap<string, LiveSource>): SecretValue<JsonValue>;
}

/**
 * Plans one target. A field whose source or key is not there is left out. A source that could not be read comes as its
 * Problem, and is rethrown if a field needs it. Throws the first Problem: what `checkFields` throws, before any source
 * is looked at, then NotUtf8, InvalidValue, TypeMismatch and InvalidBinding (a key of an object, a fieldPath of a Secret).
 */
export function planTarget(fields: readonly Field[], sources: ReadonlyMap<string, LiveSource | Problem>): Plan {
  const planned: PlannedField[] = [];
  const leftOut: LeftOut[] = [];
  for (const { path, isBytes, references, value } of checkFields(fields, sources.keys())) {
    try {
      planned.push({ path, isBytes, value: about(path, () => value(readable(references, sources))) });
    } catch (error) {
      if (!(error instanceof MissingValue)) throw error;
      leftOut.push({ path, why: error });
    }
  }
  return { fields: planned, leftOut };
}

/** What keeps the whole target from being written, if anything does: a value that is missing and is not optional. */
export function missingOf({ leftOut }: Plan): MissingValue | undefined {
  return leftOut.find(({ why }) => !why.policy.optional)?.why;
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
  const recipe = field.from === undefined ? fromTemplate(field.template, field.as) : fromSource(field.from, field.as);
  for (const reference of recipe.references) {
    if (!names.includes(reference.source)) throw new Problem("InvalidBinding", unknownSource(reference, names));
  }
  return { path, isBytes: field.as === "bytes", ...recipe };
}

function readable(
  references: Recipe["references"],
  sources: ReadonlyMap<string, LiveSource | Problem>,
): ReadonlyMap<string, LiveSource> {
  const read = new Map<string, LiveSource>();
  for (const { source: name } of references) {
    const source = sources.get(name);
    if (source instanceof Problem) throw source;
    if (source !== undefined) read.set(name, source);
  }
  return read;
}

function fromTemplate(text: string, as: Field["as"]) {
  const template = compileTemplate(text);
  return {
    references: template.references,
    value: (sources: ReadonlyMap<string, LiveSource>) =>
      template.render(sources).map((rendered) => convert(rendered, as, "the template's text")),
  };
}

function fromSource(from: NonNullable<Field["from"]>, as: Field["as"]) {
  const fieldPath = from.fieldPath === undefined ? undefined : FieldPath.parse(from.fieldPath);
  const pointer = from.pointer === undefined ? undefined : parsePointer(from.pointer);
  const value = (sources: ReadonlyMap<string, LiveSource>): SecretValue<JsonValue> => {
    const source = present(sources.get(from.source) as LiveSource);
    if (source.kind === "data") {
      if (from.key === undefined) {
        throw new Problem(
          "InvalidBinding",
          `${source.description} has keys and no fields; write key instead of fieldPath`,
        );
      }
      const subject = keyOf(source, from.key);
      if (pointer === undefined && (as === "json" || as === "yaml")) {
        return readDocument(source, from.key, as).map((document) => notNull(document, as, subject));
      }
      if (pointer === undefined) return readBytes(source, from.key).map((bytes) => convert(bytes, as, subject));
      const where = `${from.pointer} in ${subject}`;
      return readDocument(source, from.key).map((document) => {
        const found = pointAt(document, pointer);
        if (found === undefined || found === null) throw nothingAt(source, from.pointer, from.key);
        return convert(found, as, where);
      });
    }
    if (fieldPath !== undefined) {
      return readField(source, fieldPath).map((found) =>
        convert(found, as, `field ${fieldPath} of ${source.description}`),
      );
    }
    throw new Problem("InvalidBinding", `${source.description} has fields and no keys; write fieldPath instead of key`);
  };
  return { references: [{ source: from.source, path: [] }], value };
}

function nothingAt({ description, policy }: LiveSource, pointer: string | undefined, key: string | undefined) {
  return new MissingValue("KeyNotFound", `${description} has nothing at ${pointer} in its key ${key}`, policy);
}

/** Says of a Problem which field of the target it is about. */
function about<T>(path: FieldPath, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const message = `${path}: ${error.message}`;
    if (!(error instanceof MissingValue)) throw new Problem(error.reason, message);
    throw new MissingValue(error.reason as "KeyNotFound", message, error.policy);
  }
}
