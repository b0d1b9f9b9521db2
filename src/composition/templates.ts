/** Checks that the expressions of a template come from the composition: a claim may provide texts, but no expressions. Pure. */
import { FieldPath } from "../apimachinery/field-path.ts";
import { at, listAt } from "../apimachinery/fields.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { mayOverlap } from "../apimachinery/path-overlap.ts";
import { Problem, throwFirst } from "../apimachinery/problem.ts";
import type { Work } from "./patches/work.ts";
import type { WrittenPatch } from "./reach.ts";

const EXPRESSION = /\{\{[\s\S]*?\}\}+/g;

/**
 * Throws Problem("InvalidValue") if a template of the binding has an expression that is neither in the same template of the base, nor in a
 * constant of a patch that writes it. Otherwise the author of a claim could read other keys of a source, or have them written elsewhere,
 * than the composition does.
 */
export function assertSameExpressions(
  base: JsonObject,
  composed: JsonObject,
  written: readonly WrittenPatch[],
  place: string,
  work: Work,
): void {
  const before = templatesIn(base);
  const problems: Problem[] = [];
  const fields = written.reduce((sum, { paths }) => sum + paths.length, 0);
  for (const [path, template] of templatesIn(composed["spec"] as JsonObject)) {
    if (!template.includes("{{")) continue;
    work.compare(fields);
    const field = FieldPath.parse(`spec.${path}`);
    const writing = written.filter(({ paths }) => paths.some((each) => mayOverlap(each, field)));
    const known = [before.get(path) ?? "", ...writing.flatMap(({ patch }) => patch.constants)];
    const isKnown = (expression: string) => known.some((each) => each.includes(expression));
    const rest = template.replace(EXPRESSION, (expression) => (isKnown(expression) ? " " : expression));
    if (!rest.includes("{{")) continue;
    const what = `spec.${path} has an expression in {{ }} from a claim, which only the composition may contain; escape or refuse braces by a transform`;
    problems.push(new Problem("InvalidValue", { at: [place], what }));
  }
  throwFirst(problems);
}

/** The templates in a binding's spec, by path. */
function templatesIn(spec: JsonObject): Map<string, string> {
  const found = new Map<string, string>();
  for (const [target, each] of listAt(spec, "targets").entries())
    for (const [field, one] of listAt(each, "fields").entries()) {
      const template = at(one, "template");
      if (typeof template === "string") found.set(`targets[${target}].fields[${field}].template`, template);
    }
  return found;
}
