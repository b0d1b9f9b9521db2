/** Finds requests of a claim that the composition declares as not supported. Pure. */
import type { CompositionSpec } from "../api/composition.ts";
import { isObject, stringifyJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { allOf, attemptSync, eachOf, Problem } from "../apimachinery/problem.ts";
import { assertReadsClaim, type ClaimKind } from "./allowed-paths.ts";
import { getField } from "./patches/fields.ts";
import { concrete, pathIn } from "./patches/option-paths.ts";
import { Options } from "./patches/options.ts";
import type { ConcretePath } from "./patches/path.ts";
import { checkPattern, isFoundIn } from "./patches/patterns.ts";
import type { Work } from "./patches/work.ts";

export interface NotSupportedRule {
  /** Its place in the composition, such as `notSupported[2]`. */
  readonly place: string;
  readonly reads: ConcretePath;
  readonly message: string;
  /** Regular expressions: the rule applies if the text of the field matches `matches`, or does not match `doesNotMatch`. */
  readonly matches: string | undefined;
  readonly unless: string | undefined;
}

const NAME = "fromFieldPath";
const EXAMPLE = "the path of a field of the claim, such as spec.host";
const ADVICE = "which can't be read here; name one element, or the whole list";

type Rules = NonNullable<CompositionSpec["notSupported"]>;

/** Throws Problem("InvalidComposition") with the place of the first mistake. */
export function compileNotSupported(rules: Rules | undefined, kind: ClaimKind): NotSupportedRule[] {
  const compile = (rule: Rules[number], index: number): NotSupportedRule => {
    const { matches, unless, message } = rule;
    const place = `notSupported[${index}]`;
    const options = new Options(rule, place);
    const [reads] = allOf(
      () => {
        const path = concrete(options, NAME, pathIn(options, NAME, EXAMPLE), ADVICE);
        assertReadsClaim(path, kind, place);
        return path;
      },
      () => matches !== undefined && checkPattern(matches, `${place}.matches`),
      () => unless !== undefined && checkPattern(unless, `${place}.unless`),
    );
    return { place, reads, message, matches, unless };
  };
  return eachOf(rules ?? [], compile);
}

/** Throws Problem("NotSupported") for the first rule that applies to the claim, which has the others. */
export function assertSupported(rules: readonly NotSupportedRule[], claim: JsonObject, work: Work): void {
  allOf(
    ...rules.map(({ place, reads, message: what, matches, unless }) => () => {
      const value = attemptSync(() => getField(claim, reads.segments));
      if (value instanceof Problem || value === undefined || isEmpty(value)) return;
      if (matches !== undefined || unless !== undefined) work.value(value);
      const text = typeof value === "string" ? value : stringifyJson(value);
      const isFound = (pattern: string) => isFoundIn(pattern, text, work);
      if ((matches === undefined || isFound(matches)) && (unless === undefined || !isFound(unless)))
        throw new Problem("NotSupported", { at: [place, reads.text], what });
    }),
  );
}

function isEmpty(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isObject(value)) return Object.keys(value).length === 0;
  return value === null || value === "" || value === false;
}
