/** Renders the objects of files: the bindings, the fields that they write, and the mistakes. */
import { analyse, isWithoutBindings, WITHOUT_BINDINGS } from "./analysis.ts";
import type { TextFile } from "./documents.ts";
import type { Surroundings } from "./inputs.ts";
import { notMadeOf, type Rendering } from "./rendering.ts";

/**
 * `namespace` is the default namespace of objects, and `storeFiles` contain the values of stores. Throws Error if the files contain nothing
 * to render.
 */
export async function render(
  files: readonly TextFile[],
  namespace: string,
  storeFiles: readonly TextFile[] = [],
  surroundings: Surroundings = {},
): Promise<Rendering> {
  const analysis = await analyse(files, namespace, storeFiles, surroundings);
  if (isWithoutBindings(analysis)) throw new Error(WITHOUT_BINDINGS);
  const { composed, bindings, mistakes } = analysis;
  const rendered = bindings
    .filter(({ each }) => !each.isBroken)
    .map(({ each: { binding, from, notes }, targets, notes: more, grants }) => {
      const { apiVersion, kind, metadata, spec } = binding;
      return {
        ...from,
        binding: { apiVersion, kind, metadata, spec },
        notes: [...notes, ...more],
        ...(grants.length > 0 && { grants: [...grants] }),
        targets: [...targets],
      };
    });
  return {
    bindings: rendered,
    notMade: composed.notMade.map(notMadeOf),
    notes: [...composed.notes],
    mistakes: [...mistakes],
  };
}
