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

/** What `make` returns. Calls `report` with the reason if it has no equal. */
export function translated<T>(make: () => T, report: (why: string) => void): T | undefined {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof NotTranslated)) throw error;
    report(error.message);
    return undefined;
  }
}

/** A part of an expression, of the kind that is the name of its group in the pattern. */
export interface Token {
  readonly kind: string;
  readonly text: string;
}

/** The tokens of an expression. What matches no group of the sticky pattern, such as white space, is left out. Throws NotTranslated. */
export function* tokensOf(expression: string, pattern: RegExp, unknown: string): Generator<Token> {
  for (let at = 0; at < expression.length; ) {
    pattern.lastIndex = at;
    const found = pattern.exec(expression);
    if (found === null) throw new NotTranslated(unknown);
    at += found[0].length;
    for (const [kind, text] of Object.entries(found.groups ?? {})) if (text !== undefined) yield { kind, text };
  }
}

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

/** The key that a path into a Secret or ConfigMap names. Throws NotTranslated. */
export function dataKeyOf(kind: string, [data, key, ...more]: readonly string[]): string {
  if (data === "data" && key !== undefined && more.length === 0) return key;
  throw new NotTranslated(`a field of a ${kind} that is no key of its data`);
}

/** The value of a key in the API, where the values of a Secret are encoded. */
export function apiValue(kind: string, source: string, key: string): Expression {
  const value = reference(source, [key]);
  return kind === "Secret" ? call("base64", value) : value;
}
