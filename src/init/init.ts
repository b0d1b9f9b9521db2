/** Proposes a SecretBinding for a live object. Asks for what the flags leave out, if there is a terminal. */
import { Document, Scalar } from "yaml";
import { assertReadablePath, assertWritablePath, isWritableKind, isWritablePath } from "../api/writable.ts";
import { FieldPath, isNameable, keySegment, type Segment } from "../apimachinery/field-path.ts";
import { valueAt } from "../apimachinery/fields.ts";
import { isObject, sameJson } from "../apimachinery/json.ts";
import {
  apiVersionOf,
  describeObject,
  type JsonValue,
  type KubeObject,
  type ObjectRef,
  type Resource,
} from "../apimachinery/objects.ts";
import type { KindSchema, OpenApiSchema } from "../apimachinery/openapi.ts";
import { plain } from "../apimachinery/plain.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SECRETS } from "../apimachinery/resources.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { listNames, suggestNames } from "../apimachinery/suggest-names.ts";
import { YAML_OPTIONS } from "../apimachinery/yaml-options.ts";
import { type Reader, type Reading, withAdvice } from "../explain/reading.ts";
import type { Discovery, ServedResource } from "../kube/discovery.ts";
import type { Schemas } from "../kube/schemas.ts";
import { entries } from "../sources/watched-source.ts";
import type { LiveSource } from "../transform/live-source.ts";
import { checkFields, planTarget } from "../transform/plan.ts";
import { secretReferenceFor } from "../transform/readable-copies.ts";
import { checkAgainstSchema, schemaIn, typesOf } from "../transform/schema-check.ts";

export interface Flags {
  readonly target?: string;
  readonly path?: string;
  readonly secret?: string;
  readonly key?: string;
  readonly field?: readonly string[];
  readonly name?: string;
}

/** A field of the target and the key that it gets. Undefined parts are asked for. */
interface FieldWish {
  readonly path?: string | undefined;
  readonly secret?: string | undefined;
  readonly key?: string | undefined;
}

interface Wishes {
  /** A kind or plural, with its group if there is a dot. */
  readonly kind?: string;
  readonly object?: string | undefined;
  readonly fields: readonly FieldWish[];
}

const FIELD = "PATH=SECRET/KEY";

/** Throws Problem. */
export function wishesOf({ target, path, secret, key, field = [] }: Flags): Wishes {
  const single = path ?? secret ?? key;
  const first = single === undefined ? [] : [{ path, secret, key }];
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
  return { kind, object };
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

type Data = Extract<LiveSource, { kind: "data" }>;
type Field = { readonly [Part in keyof FieldWish]-?: string };

interface Chosen {
  readonly resource: Resource;
  readonly live: KubeObject;
  readonly schema: KindSchema | undefined;
  readonly secrets: ReadonlyMap<string, Data>;
  readonly fields: readonly Field[];
}

/** A source gets a name of its own, by which fields find it even if kustomize renames the Secret. A Secret may have other names. */
const NAME_OF_SOURCE = /^[A-Za-z](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?$/;

/** What the user should know of a field. */
interface Advice {
  readonly reference: string | undefined;
  readonly differs: boolean;
}

interface Proposal {
  /** The binding as YAML. */
  readonly text: string;
  /** One line each. */
  readonly warnings: readonly string[];
}

/** Throws Problem. */
function proposalOf(chosen: Chosen, name: string, namespace: string): Proposal {
  const { fields, secrets } = chosen;
  const twice = fields.find(({ path }, at) => fields.findIndex((each) => each.path === path) !== at);
  if (twice !== undefined) throw new Problem("InvalidBinding", `${twice.path} is listed twice; write it from one key`);
  const advised = fields.map((field) => ({ ...field, advice: adviceOn(field, chosen) }));
  const entries = fields.map(({ path, secret, key }) => ({ path, from: { source: secret, key } }));
  checkFields(entries as Parameters<typeof checkFields>[0], secrets.keys());
  const warnings = advised.flatMap((field) => [...warningsOn(field, field.advice, chosen)]);
  return { text: textOf(advised, chosen, { name, namespace }), warnings };
}

/** The binding, with comments above fields that have their own Secret reference, or another value now. */
function textOf(
  advised: readonly (Field & { readonly advice: Advice })[],
  { resource, live }: Chosen,
  metadata: object,
): string {
  const document = new Document({}, YAML_OPTIONS);
  const inline = (value: object) => document.createNode(value, { flow: true });
  const fields = advised.map(({ path, secret, key, advice: { reference } }) => {
    const field = document.createNode({ path, from: inline({ source: secret, key }) });
    if (reference !== undefined)
      field.commentBefore = ` ${resource.kind} can read the Secret itself: set ${reference}, and remove this field.`;
    return field;
  });
  const sources = [...new Set(advised.map(({ secret }) => secret))].map((secret) => ({
    ...(NAME_OF_SOURCE.test(secret) && { name: secret }),
    secret: inline({ name: secret }),
  }));
  const differing = advised.filter(({ advice }) => advice.differs).map(({ path }) => path);
  const fieldsKey = new Scalar("fields");
  if (differing.length > 0)
    fieldsKey.commentBefore = ` To replace the present values of ${differing.join(", ")}, add: onConflict: Force`;
  const target = document.createNode({
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    name: live.metadata.name,
  });
  target.add(document.createPair(fieldsKey, fields));
  const spec = { sources, targets: [target] };
  document.contents = document.createNode({ apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", metadata, spec });
  return document.toString(YAML_OPTIONS);
}

function adviceOn({ path: text, secret, key }: Field, { resource, live, schema, secrets }: Chosen): Advice {
  const path = FieldPath.parse(text);
  assertWritablePath(path);
  assertReadablePath(resource.group, resource.kind, path);
  const source = secrets.get(secret) as Data;
  if (!source.data.has(key)) {
    const others = suggestNames(source.description, key, [...source.data.keys()]);
    throw new Problem("KeyNotFound", `--key: ${source.description} has no key ${JSON.stringify(key)}; ${others}`);
  }
  const schemaAt = schema && schemaIn(schema.root, schema.resolve);
  const field = { path: text, from: { source: secret, key } } as Parameters<typeof planTarget>[0][number];
  const plan = planTarget([field], new Map([[secret, source]]), schemaAt);
  if (schema !== undefined) checkAgainstSchema(plan, schema.root, schema.resolve);
  const now = valueAt(live, path);
  const value = plan.fields[0]?.value.reveal();
  const reference = schemaAt && secretReferenceFor(path, schemaAt);
  return { reference, differs: now !== undefined && value !== undefined && !sameJson(now as JsonValue, value) };
}

function* warningsOn(
  { path, secret, key }: Field,
  { reference, differs }: Advice,
  { resource, live: { metadata } }: Chosen,
): Generator<string> {
  const object = describeObject(resource.kind, metadata.namespace, metadata.name);
  if (reference !== undefined)
    yield `${resource.kind} can read the Secret itself: set ${reference} instead of binding ${path}`;
  if (differs)
    yield `${path} of ${object} has another value than key ${key} of Secret ${secret}; add onConflict: Force to the target to replace it, or remove the field there`;
}

const MAX_PATHS = 5_000;
const MAX_DEPTH = 12;
/** Not written by bindings, or not by users. */
const LEFT_OUT = ["apiVersion", "kind", "metadata", "status"];

/** The fields of the object first. The metadata and status are left out. */
export function textPaths(object: KubeObject, schema: KindSchema | undefined): string[] {
  const paths = new Set<string>();
  for (const path of livePaths(fieldsToWrite(object), [])) add(paths, path);
  if (schema !== undefined) {
    const schemaAt = schemaIn(schema.root, schema.resolve);
    for (const path of schemaPaths(schemaAt(new FieldPath([])), new FieldPath([]), schemaAt)) add(paths, path);
  }
  return [...paths];
}

function add(paths: Set<string>, path: FieldPath): void {
  if (paths.size < MAX_PATHS && isWritablePath(path)) paths.add(String(path));
}

const fieldsToWrite = (object: object) =>
  Object.fromEntries(Object.entries(object).filter(([key]) => !LEFT_OUT.includes(key)));

function* livePaths(value: unknown, above: readonly Segment[]): Generator<FieldPath> {
  if (above.length > MAX_DEPTH) return;
  if (Array.isArray(value))
    for (const [index, each] of value.entries()) yield* livePaths(each, [...above, elementOf(each, index)]);
  else if (isObject(value)) {
    for (const [key, each] of Object.entries(value))
      if (isNameable(key)) yield* livePaths(each, [...above, keySegment(key)]);
  } else if (value !== null) yield new FieldPath(above);
}

/** By its name, which stays if the order changes. */
function elementOf(element: unknown, index: number): Segment {
  const name = isObject(element) ? element["name"] : undefined;
  if (typeof name !== "string") return { kind: "index", index };
  return { kind: "element", conditions: [{ key: "name", value: name }] };
}

function* schemaPaths(
  schema: OpenApiSchema | undefined,
  above: FieldPath,
  schemaAt: (path: FieldPath) => OpenApiSchema | undefined,
): Generator<FieldPath> {
  for (const key of Object.keys(schema?.properties ?? {})) {
    if (!isNameable(key) || (above.segments.length === 0 && LEFT_OUT.includes(key))) continue;
    const path = above.with(keySegment(key));
    const below = schemaAt(path);
    if (below === undefined || path.segments.length > MAX_DEPTH) continue;
    if (typesOf(below).includes("string")) yield path;
    else yield* schemaPaths(below, path, schemaAt);
  }
}

interface InitTools {
  readonly reader: Reader;
  readonly discovery: Pick<Discovery, "allKinds" | "byKindAsNamed">;
  readonly schemas: Pick<Schemas, "of">;
}

/** Reads what `inlay init` offers and checks: kinds, objects, schemas, Secrets and their keys. Reads as the user. */
class ClusterView {
  readonly #tools: InitTools;
  readonly namespace: string;

  constructor(tools: InitTools, namespace: string) {
    this.#tools = tools;
    this.namespace = namespace;
  }

  /** The kinds that a binding can write, each in its preferred version. */
  async kinds(): Promise<ServedResource[]> {
    const all = (await this.#tools.discovery.allKinds()).filter(
      ({ group, kind, verbs }) => verbs.includes("patch") && verbs.includes("list") && isWritableKind(group, kind),
    );
    return [...new Map(all.toReversed().map((each) => [`${each.group}/${each.kind}`, each])).values()].toReversed();
  }

  /** The kind of that kind or plural, with or without its group. Throws Problem. */
  async kindCalled(text: string): Promise<Resource> {
    const all = await this.kinds();
    const wanted = text.toLowerCase();
    const found = all.filter((each) =>
      [each.kind, each.plural].some((name) => [name, fullName(name, each)].some((one) => one.toLowerCase() === wanted)),
    );
    const [first, ...others] = found;
    if (first === undefined)
      throw new Problem(
        "KindNotFound",
        `--target: the cluster serves no kind ${JSON.stringify(text)} that a binding can write; ${suggestNames(
          "the cluster",
          text,
          [...new Set(all.map(({ kind }) => kind))],
        )}`,
      );
    if (others.length > 0)
      throw new Problem(
        "KindNotFound",
        `--target: several groups have the kind ${first.kind}; write one of ${found.map((each) => fullName(each.kind, each)).join(", ")}`,
      );
    return (await this.#tools.discovery.byKindAsNamed(apiVersionOf(first), first.kind)) as Resource;
  }

  names(resource: Resource): Promise<string[]> {
    const namespace = resource.namespaced ? this.namespace : undefined;
    const scope = { resource, namespace, form: "metadata" as const };
    return this.#tools.reader.list(scope, ({ metadata }) => metadata.name).then(foundIn);
  }

  /** Throws Problem if there is none. */
  object(resource: Resource, name: string): Promise<KubeObject> {
    return this.#get(resource, name, (object) => object, ["TargetNotFound", "--target"]);
  }

  /** The values stay sealed. Throws Problem if there is no such Secret. */
  secret(name: string): Promise<Data> {
    return this.#get(SECRETS, name, (object) => sealed(object, this.namespace), ["SourceNotFound", "--secret"]);
  }

  async #get<T>(
    resource: Resource,
    name: string,
    see: (object: KubeObject) => T,
    [reason, flag]: readonly ["TargetNotFound" | "SourceNotFound", string],
  ): Promise<T> {
    const ref: ObjectRef = { resource, name, ...(resource.namespaced && { namespace: this.namespace }) };
    const read = await this.#tools.reader.get(ref, see, "whole");
    if (read.state !== "NotFound") return foundIn(read);
    const what = describeObject(resource.kind, ref.namespace, name);
    const others = listNames("the namespace", name, await this.names(resource));
    throw new Problem(reason, `${flag}: there is no ${what}; ${others}`);
  }
}

const fullName = (name: string, { group }: Pick<Resource, "group">) => (group === "" ? name : `${name}.${group}`);

function foundIn<T>(read: Reading<T>): T {
  if (read.state === "Found") return read.it;
  throw new Problem("Forbidden", read.state === "Unreadable" ? withAdvice(read) : "there is no such object");
}

function sealed({ metadata, ...object }: KubeObject & { data?: unknown }, namespace: string): Data {
  return {
    kind: "data",
    isSecret: true,
    description: `Secret ${namespace}/${metadata.name}`,
    version: metadata.resourceVersion,
    policy: { onMissing: "Wait", optional: false },
    annotations: new SecretValue({}),
    labels: new SecretValue({}),
    data: new Map(entries(object.data, "base64")),
  };
}

/** Lets the user choose one of some names. With `isOpen`, other texts are valid, too. */
export type Ask = (question: string, names: readonly string[], isOpen?: boolean) => Promise<string>;

const PRINT = "print the binding";
const MORE = "add another field";

/** Without `ask`, flags must say everything. Throws Problem. */
export async function init(tools: InitTools, flags: Flags, namespace: string, ask: Ask | undefined): Promise<Proposal> {
  const wishes = wishesOf(flags);
  const missing = missingFlags(wishes);
  if (ask === undefined && missing.length > 0)
    throw new Problem("InvalidBinding", `no terminal to ask on, so these flags are missing: ${missing.join(", ")}`);
  const view = new ClusterView(tools, namespace);
  const choose: Ask = (question, names, isOpen) => {
    if (ask === undefined)
      throw new Problem("InvalidBinding", `no terminal to ask for the ${question} on; set it by a flag`);
    if (names.length === 0 && !isOpen) throw new Problem("TargetNotFound", `there is no ${question} to choose from`);
    return ask(question, names.map(plain), isOpen);
  };
  const resource = await view.kindCalled(
    wishes.kind ??
      (await choose(
        "kind",
        (await view.kinds()).map((each) => fullName(each.kind, each)),
      )),
  );
  const name = wishes.object ?? (await choose(resource.kind, await view.names(resource)));
  const live = await view.object(resource, name);
  const schema = await tools.schemas.of(resource);
  const secrets = new Map<string, Data>();
  const fields: Field[] = [];
  const complete = async (wish: FieldWish) => {
    const path = wish.path ?? (await choose("field", textPaths(live, schema), true));
    const secret = wish.secret ?? (await choose("Secret", await view.names(SECRETS)));
    const source = secrets.get(secret) ?? (await view.secret(secret));
    secrets.set(secret, source);
    const key = wish.key ?? (await choose(`key of Secret ${secret}`, [...source.data.keys()]));
    fields.push({ path, secret, key });
  };
  for (const wish of wishes.fields) await complete(wish);
  if (wishes.fields.length === 0) {
    await complete({});
    while ((await choose("next step", [PRINT, MORE])) === MORE) await complete({});
  }
  const chosen: Chosen = { resource, live, schema, secrets, fields };
  return proposalOf(chosen, flags.name ?? `${name}-${fields[0]?.secret}`, namespace);
}
