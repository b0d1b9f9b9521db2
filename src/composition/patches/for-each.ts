/** Compiles the transform forEach: converts a list of objects to a list of objects with selected fields. */
import type { Transform } from "../../api/composition.ts";
import { isObject } from "../../apimachinery/json.ts";
import type { JsonObject } from "../../apimachinery/objects.ts";
import { attemptSync, Problem } from "../../apimachinery/problem.ts";
import { getField, setField } from "./fields.ts";
import { fromJson, type GoValue, invalid, toJson, typeOf } from "./go/value.ts";
import { assertWritable, concrete, pathIn } from "./option-paths.ts";
import { Options } from "./options.ts";
import type { ConcretePath } from "./path.ts";
import type { CompiledTransforms, ElementField, Step } from "./steps.ts";
import type { Work } from "./work.ts";

type Compile = (transforms: readonly Transform[] | undefined, place: string) => CompiledTransforms;

const FIELD_NAMES = ["fromFieldPath", "toFieldPath", "transforms"];
const EXAMPLE = "a list of fields, as in [{fromFieldPath: name}]";

/** `compile` compiles the transforms of a field. */
export function compileForEach(options: Options, compile: Compile): Step {
  options.only(["fields"]);
  const fields = options.list("fields").map((each, n) => compileField(each, `${options.place}.fields[${n}]`, compile));
  if (fields.length === 0) throw options.missing("fields", EXAMPLE);
  const apply = (value: GoValue, work: Work): GoValue => {
    if (!Array.isArray(value)) throw invalid(`forEach takes a list, not ${typeOf(value)}`);
    return value.map((element, at) => {
      const from = toJson(element);
      if (!isObject(from)) throw invalid(`forEach takes a list of objects, and element ${at} is ${typeOf(element)}`);
      return elementOf(from, fields, at, work);
    });
  };
  return { apply, constants: fields.flatMap(({ transforms }) => transforms.constants), elements: fields };
}

interface CompiledField extends ElementField {
  readonly reads: ConcretePath;
  readonly transforms: CompiledTransforms;
}

function compileField(field: unknown, place: string, compile: Compile): CompiledField {
  const options = new Options(field, place).only(FIELD_NAMES);
  const reads = pathOf(options, "fromFieldPath");
  const writes = options.get("toFieldPath") === undefined ? reads : pathOf(options, "toFieldPath");
  const transforms = compile(options.get("transforms") as readonly Transform[] | undefined, place);
  if (transforms.elements !== undefined)
    throw options.wrong("transforms", "has forEach, which can't be in another forEach; copy the inner list as it is");
  return { reads, writes, transforms, isListed: transforms.isListed };
}

function pathOf(options: Options, name: string): ConcretePath {
  const given = pathIn(options, name, "the path of a field of each element, such as name");
  const path = concrete(options, name, given, "which a field of an element can't have");
  assertWritable(options, name, path);
  return path;
}

/** A field that is missing in the element is omitted. */
function elementOf(from: JsonObject, fields: readonly CompiledField[], at: number, work: Work): GoValue {
  const result: JsonObject = {};
  for (const { reads, writes, transforms } of fields) {
    const value = getField(from, reads.segments);
    if (value === undefined) continue;
    const changed = attemptSync(() => transforms.apply(value, work));
    if (changed instanceof Problem) throw changed.within(`element ${at}, ${reads.text}`);
    if (changed !== null) setField(result, writes.segments, changed);
  }
  return fromJson(result);
}
