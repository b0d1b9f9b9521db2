/** Reads paths of fields from the options of patches and transforms. Errors contain the place. */
import { attemptSync, Problem } from "../../apimachinery/problem.ts";
import { MAX_WRITTEN_INDEX } from "./fields.ts";
import type { Options } from "./options.ts";
import { type CompositePath, type ConcretePath, isConcrete, parseCompositePath } from "./path.ts";

/** Throws Problem("InvalidComposition"). */
export function pathIn(options: Options, name: string, example: string): CompositePath {
  const text = options.text(name, example);
  const path = attemptSync(() => parseCompositePath(text));
  if (path instanceof Problem) throw options.wrong(name, path.what);
  return path;
}

/** The path, if it names one field. `advice` is the advice about a wildcard. Throws Problem("InvalidComposition"). */
export function concrete(options: Options, name: string, path: CompositePath, advice: string): ConcretePath {
  if (isConcrete(path)) return path;
  throw options.wrong(name, `has [*], ${advice}`);
}

/** Throws Problem("InvalidComposition") for an index that is too high. */
export function assertWritable(options: Options, name: string, { segments }: CompositePath): void {
  if (segments.some((segment) => segment.kind === "index" && segment.index > MAX_WRITTEN_INDEX))
    throw options.wrong(name, `has an index above ${MAX_WRITTEN_INDEX}, the highest that is written`);
}
