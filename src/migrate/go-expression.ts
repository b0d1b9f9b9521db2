/** Expressions of templates, as Go templates and Handlebars share them. Pure. */

/** A step of a path in a template: a name, or the index of a list. */
export type Key = string | number;

/** A value of a source: a key, or the path of a field of an object. */
export interface Reference {
  readonly source: string;
  readonly path: readonly string[];
  readonly isField?: boolean;
}

export type Expression =
  | { readonly kind: "reference"; readonly reference: Reference }
  | { readonly kind: "literal"; readonly value: string | number }
  | { readonly kind: "call"; readonly helper: string; readonly args: readonly Expression[] };

export interface ObjectLookup {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** Finds what a path in a template, such as `.password`, refers to. Throws NotTranslated. */
export interface Resolve {
  (path: readonly Key[]): Expression;
  /** Returns the first step of paths into the object that the function `lookup` finds. Absent if there is no such function. */
  readonly lookup?: (object: ObjectLookup) => Key;
}

/** Why a template has no equal in Handlebars. */
export class NotTranslated extends Error {}

export const reference = (source: string, path: readonly string[], isField = false): Expression => ({
  kind: "reference",
  reference: { source, path, isField },
});

export const call = (helper: string, ...args: readonly Expression[]): Expression => {
  const [first] = args;
  // The keys of a Secret are encoded for Go templates only.
  if (helper === "base64decode" && first?.kind === "call" && first.helper === "base64")
    return first.args[0] as Expression;
  return { kind: "call", helper, args };
};
