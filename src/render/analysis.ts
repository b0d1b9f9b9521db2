/** Analyses the objects of files: the bindings in them and those that compositions make, the fields of each, and the mistakes. */
import type { SecretBinding } from "../api/binding.ts";
import { DEFAULT_NAMESPACE, Installation } from "../api/installation.ts";
import { type BindingFields, fieldsOf } from "./binding-fields.ts";
import { type BindingToRender, type Composed, composeBindings, isBinding } from "./claims.ts";
import { type Mistake, type ObjectDocument, readDocuments, type TextFile } from "./documents.ts";
import { fileCluster } from "./file-cluster.ts";
import { type InputObject, type Inputs, inputsOf, mistakeAt, type Surroundings } from "./inputs.ts";
import { readStoreValues } from "./store-values.ts";

export interface AnalysedBinding extends BindingFields {
  readonly each: BindingToRender;
}

export interface Analysis {
  readonly inputs: Inputs;
  readonly composed: Composed;
  readonly bindings: readonly AnalysedBinding[];
  /** In the order of the files and their lines. */
  readonly mistakes: readonly Mistake[];
}

export interface ReadObjects {
  readonly documents: readonly ObjectDocument[];
  readonly mistakes: readonly Mistake[];
}

/** `namespace` is the default namespace of objects, and `storeFiles` contain the values of stores. */
export async function analyse(
  files: readonly TextFile[],
  namespace: string,
  storeFiles: readonly TextFile[] = [],
  surroundings: Surroundings = {},
  read: ReadObjects = readDocuments(files),
): Promise<Analysis> {
  const stores = readStoreValues(storeFiles);
  const inputs = inputsOf(read.documents, namespace, { ...surroundings, stores: stores.values });
  // The namespace of Inlay is closed to bindings.
  const { installation = new Installation({ ownNamespace: DEFAULT_NAMESPACE }) } = surroundings;
  const cluster = fileCluster(inputs);
  const own = inputs.objects.filter(isBinding);
  const composed = composeBindings(inputs, installation);
  const all = [...composed.bindings, ...own.map(bindingIn)];
  const bindings = await Promise.all(
    all.map(async (each) => ({ each, ...(await fieldsOf(each, inputs, cluster, installation)) })),
  );
  const mistakes = [
    ...read.mistakes,
    ...inputs.mistakes,
    ...stores.mistakes,
    ...composed.mistakes,
    ...bindings.flatMap((each) => each.mistakes),
  ];
  return { inputs, composed, bindings, mistakes: inOrder(mistakes, [...files, ...storeFiles]) };
}

export const WITHOUT_BINDINGS = "the files contain no BindingComposition and no SecretBinding; add one with -f";

/** Whether the files are probably others than the user means. */
export const isWithoutBindings = ({ inputs, mistakes }: Analysis): boolean =>
  mistakes.length === 0 &&
  !inputs.objects.some(({ object }) => ["BindingComposition", "SecretBinding"].includes(object.kind));

/** The status of a SecretBinding is of a cluster, so it is dropped. */
export function bindingIn({ document, object, isBroken }: InputObject): BindingToRender {
  const { status: _, metadata, ...rest } = object;
  const { uid: __, resourceVersion: ___, managedFields: ____, ...kept } = metadata;
  const binding = { ...rest, metadata: kept } as unknown as SecretBinding;
  return {
    binding,
    producedBy: "none",
    notes: [],
    isBroken,
    mistakeAt: (reason, parts, at) => mistakeAt(document, reason, parts, [], at),
  };
}

/** By file and line, without rules that are broken at the place of another mistake, which says more. */
export function inOrder<M extends Mistake>(mistakes: readonly M[], files: readonly TextFile[]): M[] {
  const position = new Map(files.map(({ name }, at) => [name, at]));
  const at = ({ file }: Mistake) => position.get(file) ?? 0;
  const placeOf = ({ file, line, column }: Mistake) => `${file}:${line}:${column}`;
  const explained = new Set(mistakes.filter(({ reason }) => reason !== "Invalid").map(placeOf));
  return mistakes
    .filter((each) => each.reason !== "Invalid" || !explained.has(placeOf(each)))
    .toSorted((a, b) => at(a) - at(b) || a.line - b.line || a.column - b.column);
}
