/** Renders the objects of files: the bindings, the fields that they write, and the mistakes. */
import { analyse } from "./analysis.ts";
import type { TextFile } from "./documents.ts";
import type { Surroundings } from "./inputs.ts";
import { notMadeOf, type SealedRendering } from "./rendering.ts";

/**
 * `namespace` is the default namespace of objects, and `vaultFiles` contain the values of Vault. Throws Error if the files contain nothing
 * to render.
 */
export async function render(
  files: readonly TextFile[],
  namespace: string,
  vaultFiles: readonly TextFile[] = [],
  surroundings: Surroundings = {},
): Promise<SealedRendering> {
  const { inputs, composed, bindings, mistakes } = await analyse(files, namespace, vaultFiles, surroundings);
  const isEmpty = !inputs.objects.some(({ object }) => ["BindingComposition", "SecretBinding"].includes(object.kind));
  if (isEmpty && mistakes.length === 0)
    throw new Error("the files contain no BindingComposition and no SecretBinding; add one with -f");
  const rendered = bindings
    .filter(({ each }) => !each.isBroken)
    .map(({ each: { binding, from, notes }, targets, notes: more }) => {
      const { apiVersion, kind, metadata, spec } = binding;
      return {
        ...from,
        binding: { apiVersion, kind, metadata, spec },
        notes: [...notes, ...more],
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
