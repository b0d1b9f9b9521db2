/** Renders the objects of files: the bindings, the fields that they write, and the mistakes. */
import type { SecretBinding } from "../api/binding.ts";
import { Installation } from "../api/installation.ts";
import { isSameKind } from "../apimachinery/objects.ts";
import { fieldsOf } from "./binding-fields.ts";
import { type BindingToRender, composeBindings } from "./claims.ts";
import { type Mistake, readDocuments, type TextFile } from "./documents.ts";
import { fileCluster } from "./file-cluster.ts";
import { type InputObject, inputsOf, mistakeAt } from "./inputs.ts";
import { OWN_VERSION } from "./own-kinds.ts";
import { notMadeOf, type SealedRendering } from "./rendering.ts";
import { readVaultValues } from "./vault-values.ts";

/** The namespace in which Inlay runs by default, which is closed to bindings. */
const OWN_NAMESPACE = "inlay-system";

/**
 * `namespace` is the default namespace of objects, and `vaultFiles` contain the values of Vault. Throws Error if the files contain nothing
 * to render.
 */
export async function render(
  files: readonly TextFile[],
  namespace: string,
  vaultFiles: readonly TextFile[] = [],
): Promise<SealedRendering> {
  const { documents, mistakes: unreadable } = readDocuments(files);
  const vault = readVaultValues(vaultFiles);
  const inputs = inputsOf(documents, namespace, vault.values);
  const installation = new Installation({ ownNamespace: OWN_NAMESPACE });
  const cluster = fileCluster(inputs);
  const own = inputs.objects.filter(isBinding);
  const taken = new Set(own.map(({ object: { metadata } }) => `${metadata.namespace}/${metadata.name}`));
  const composed = composeBindings(inputs, installation, taken);
  const all = [...composed.bindings, ...own.map(bindingIn)];
  const results = await Promise.all(
    all.map(async (each) => ({ each, ...(await fieldsOf(each, inputs, cluster, installation)) })),
  );
  const mistakes = [
    ...unreadable,
    ...inputs.mistakes,
    ...vault.mistakes,
    ...composed.mistakes,
    ...results.flatMap((each) => each.mistakes),
  ];
  const isEmpty = !inputs.objects.some(({ object }) => ["BindingComposition", "SecretBinding"].includes(object.kind));
  if (isEmpty && mistakes.length === 0)
    throw new Error("the files contain no BindingComposition and no SecretBinding; add one with -f");
  const bindings = results
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
    bindings,
    notMade: composed.notMade.map(notMadeOf),
    notes: [...composed.notes],
    mistakes: inOrder(mistakes, [...files, ...vaultFiles]),
  };
}

export const isBinding = ({ object }: InputObject): boolean =>
  isSameKind(object, { apiVersion: OWN_VERSION, kind: "SecretBinding" });

/** The status of a SecretBinding is of a cluster, so it is dropped. */
export function bindingIn({ document, object, isBroken }: InputObject): BindingToRender {
  const { status: _, metadata, ...rest } = object;
  const { uid: __, resourceVersion: ___, managedFields: ____, ...kept } = metadata;
  const binding = { ...rest, metadata: kept } as unknown as SecretBinding;
  return { binding, notes: [], isBroken, mistakeAt: (message) => mistakeAt(document, message) };
}

const inOrder = (mistakes: readonly Mistake[], files: readonly TextFile[]): Mistake[] => {
  const position = new Map(files.map(({ name }, at) => [name, at]));
  const at = ({ file }: Mistake) => position.get(file) ?? 0;
  return mistakes.toSorted((a, b) => at(a) - at(b) || a.line - b.line);
};
