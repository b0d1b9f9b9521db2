/** Parses what the flags of `inlay init` ask for. Pure. */
import { Problem } from "../apimachinery/problem.ts";

export interface Flags {
  readonly target?: string;
  readonly path?: string;
  readonly secret?: string;
  readonly key?: string;
  readonly field?: readonly string[];
  readonly name?: string;
}

/** A field of the target and the key that it gets. Undefined parts are asked for. */
export interface FieldWish {
  readonly path?: string;
  readonly secret?: string;
  readonly key?: string;
}

export interface Wishes {
  /** A kind or plural, with its group if there is a dot. */
  readonly kind?: string;
  readonly object?: string;
  readonly fields: readonly FieldWish[];
}

const FIELD = "PATH=SECRET/KEY";

/** Throws Problem. */
export function wishesOf({ target, path, secret, key, field = [] }: Flags): Wishes {
  const single = path ?? secret ?? key;
  const first = single === undefined ? [] : [withoutUndefined({ path, secret, key })];
  return { ...(target === undefined ? {} : targetOf(target)), fields: [...first, ...field.map(fieldOf)] };
}

/** The flags without which nothing can be printed. */
export function missingFlags({ kind, object, fields }: Wishes): string[] {
  const [first = {}] = fields;
  const isEmpty = fields.length === 0;
  return [
    ...(kind === undefined || object === undefined ? ["--target KIND/NAME"] : []),
    ...(isEmpty ? [`--field ${FIELD}`] : []),
    ...(!isEmpty && first.path === undefined ? ["--path"] : []),
    ...(!isEmpty && first.secret === undefined ? ["--secret"] : []),
    ...(!isEmpty && first.key === undefined ? ["--key"] : []),
  ];
}

function targetOf(text: string): Pick<Wishes, "kind" | "object"> {
  const [kind = "", object, ...more] = text.split("/");
  if (kind === "" || object === "" || more.length > 0)
    throw wrong("--target", text, "write KIND/NAME, such as HarborCluster/harbor");
  return { kind, ...(object !== undefined && { object }) };
}

/** A path may contain an equals sign, as in `[name=a]`; the name of a Secret and its keys don't. */
function fieldOf(text: string): FieldWish {
  const [, path, secret, key] = /^(.+)=([^=/]+)\/([^=/]+)$/.exec(text) ?? [];
  if (path === undefined || secret === undefined || key === undefined)
    throw wrong("--field", text, `write ${FIELD}, such as spec.password=database/password`);
  return { path, secret, key };
}

const wrong = (flag: string, text: string, advice: string) =>
  new Problem("InvalidBinding", `${flag} ${JSON.stringify(text)}: ${advice}`);

function withoutUndefined(wish: { [name in keyof FieldWish]: string | undefined }): FieldWish {
  return Object.fromEntries(Object.entries(wish).filter(([, value]) => value !== undefined));
}
