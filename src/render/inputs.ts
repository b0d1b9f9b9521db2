/** Checks single objects of files, as the API server would. Pure. */
import type { Installation } from "../api/installation.ts";
import { DEFAULT_LIMITS } from "../api/limits.ts";
import { fieldsAt } from "../apimachinery/fields.ts";
import { isObject } from "../apimachinery/json.ts";
import { describeObject, idOfObject, type JsonObject, type KubeObject } from "../apimachinery/objects.ts";
import { type ProblemParts, sentenceOf } from "../apimachinery/problem.ts";
import { SECRET_BINDINGS } from "../apimachinery/resources.ts";
import type { Mistake, MistakeReason, ObjectDocument } from "./documents.ts";
import { type Kinds, kindsOf, type ServedKinds } from "./kinds.ts";
import { type Checked, checkOwn, isOwn, OWN_KINDS, wrongAt } from "./own-kinds.ts";
import { type Step, stepsOf } from "./place.ts";
import { readStoreValues, type StoreValues } from "./store-values.ts";

/** An object with a name, and a namespace if its kind is namespaced. */
export interface InputObject {
  readonly document: ObjectDocument;
  readonly object: KubeObject & JsonObject;
  /** The object had mistakes, which were removed to find later mistakes. It is not rendered. */
  readonly isBroken: boolean;
}

export interface Inputs {
  readonly kinds: Kinds;
  readonly objects: readonly InputObject[];
  readonly mistakes: readonly Mistake[];
  readonly stores: StoreValues;
  /** The objects of a cluster count too, so an object that is missing does not exist. */
  readonly isCluster: boolean;
}

/** What else is known, and how strict the check is. */
export interface Surroundings {
  /** CRDs that are not in the files. */
  readonly crds?: readonly JsonObject[];
  /** Mistakes in objects of other kinds than Inlay's own are ignored. Such an object may be a part of one, such as a patch. */
  readonly ownOnly?: boolean;
  /** The rules by which bindings are checked. By default, those without a configuration file. */
  readonly installation?: Installation;
  /** The values of stores. By default, none is known. */
  readonly stores?: StoreValues;
  readonly cluster?: {
    /** The kinds that the cluster serves. Other kinds are described by the files. */
    readonly kinds: ServedKinds;
    readonly objects: readonly (KubeObject & JsonObject)[];
    /** These are all grants, connections and namespaces of the cluster. */
    readonly isWhole: boolean;
  };
}

/** The uid of an object without one, since it is not from a cluster. */
export const NO_UID = "00000000-0000-0000-0000-000000000000";

/** The fields of Secrets and ConfigMaps with strings, and those with base64. */
const TEXTS = new Map([
  ["Secret", "stringData"],
  ["ConfigMap", "data"],
]);
const BYTES = new Map([
  ["Secret", "data"],
  ["ConfigMap", "binaryData"],
]);
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const TEXT_RULE = "must be a string; put it in quotes";

/** `namespace` is the default namespace of objects. Objects with mistakes are only kept if they are of Inlay's own kinds. */
export function inputsOf(
  documents: readonly ObjectDocument[],
  namespace: string,
  { crds = [], ownOnly = false, cluster, installation, stores = readStoreValues([]).values }: Surroundings = {},
): Inputs {
  const mistakes: Mistake[] = [];
  const kinds = kindsOf([...documents.map(({ object }) => object), ...crds], cluster?.kinds);
  const seen = new Map<string, ObjectDocument>();
  const live = new Map((cluster?.objects ?? []).map((each) => [idOfObject(each), each]));
  const { bindingBytes } = installation?.limits ?? DEFAULT_LIMITS;
  const objects = documents.flatMap((document): InputObject[] => {
    const bytes = isBinding(document.object) ? Buffer.byteLength(JSON.stringify(document.object)) : 0;
    if (bytes > bindingBytes) {
      mistakes.push(mistakeAt(document, "TooLarge", tooLarge(bytes, bindingBytes)));
      return [];
    }
    const { wrong, corrected } = check(document.object);
    if (ownOnly && !isOurs(document.object) && wrong.length > 0) return [];
    mistakes.push(...wrong.map((each) => mistakeAt(document, "Invalid", each)));
    if (corrected === undefined) return [];
    const object = completed(corrected, kinds, namespace);
    const { kind, metadata } = object;
    const id = idOfObject(object);
    const other = seen.get(id);
    if (other !== undefined && ownOnly && !isOwn(object as JsonObject)) return [];
    if (other !== undefined) {
      const what = describeObject(kind, metadata.namespace, metadata.name);
      const where = `${other.file}:${other.positionOf([]).line}`;
      mistakes.push(mistakeAt(document, "Invalid", `${what} is in ${where} too; remove one of them`));
      return [];
    }
    seen.set(id, document);
    // Bindings of a claim have its uid in a label.
    metadata.uid = live.get(id)?.metadata.uid ?? metadata.uid;
    return [{ document, object, isBroken: wrong.length > 0 }];
  });
  const others = [...live].flatMap(([id, object]): InputObject[] =>
    seen.has(id) ? [] : [{ document: fromCluster(object), object, isBroken: false }],
  );
  return { kinds, objects: [...objects, ...others], mistakes, stores, isCluster: cluster?.isWhole ?? false };
}

/** An object of Inlay, or one that lacks only its apiVersion. */
export const isOurs = (object: JsonObject): boolean =>
  isOwn(object) || (object["apiVersion"] === undefined && OWN_KINDS.includes(String(object["kind"])));

const isBinding = (object: JsonObject): boolean => isOurs(object) && object["kind"] === SECRET_BINDINGS.kind;

/** The controller does not reconcile such a binding. */
const tooLarge = (bytes: number, most: number): string =>
  `the binding has ${bytes} bytes as JSON, and Inlay allows ${most} (limits.bindingBytes); split it into several bindings`;

/** The file of objects that are not in a file. */
export const FROM_CLUSTER = "<cluster>";

/** An object of the cluster has no place in the files. */
export const fromCluster = (object: JsonObject): ObjectDocument => ({
  file: FROM_CLUSTER,
  object,
  positionOf: () => ({ line: 1, column: 1 }),
});

/** `at` are the places of the mistake below `within`. By default, those of the parts. */
export function mistakeAt(
  document: ObjectDocument,
  reason: MistakeReason,
  parts: string | ProblemParts,
  within: readonly Step[] = [],
  at: readonly string[] = typeof parts === "string" ? [] : (parts.at ?? []),
): Mistake {
  const message = typeof parts === "string" ? parts : sentenceOf(parts);
  return { file: document.file, ...document.positionOf([...within, ...stepsOf(at)]), reason, message };
}

function check(object: JsonObject): Checked {
  const wrong = [...wrongIn(object)];
  const name = fieldsAt(object, "metadata")["name"];
  if (!isOwn(object) || typeof name !== "string") return { wrong, corrected: wrong.length === 0 ? object : undefined };
  const own = checkOwn(object, name);
  return { wrong: [...wrong, ...own.wrong], corrected: wrong.length === 0 ? own.corrected : undefined };
}

/** The mistakes of an object of any kind. */
function* wrongIn(object: JsonObject): Generator<ProblemParts> {
  const { apiVersion, kind, metadata } = object;
  for (const [field, value] of Object.entries({ apiVersion, kind }))
    if (typeof value !== "string" || value === "") yield wrongAt(field, "must be a string");
  if (typeof apiVersion !== "string" || typeof kind !== "string") return;
  if (!isObject(metadata)) return yield wrongAt("metadata", "must be an object");
  const { name, namespace = "" } = metadata;
  if (typeof name !== "string" || name === "") yield wrongAt("metadata.name", "must be a string");
  if (typeof namespace !== "string") yield wrongAt("metadata.namespace", TEXT_RULE);
  for (const map of ["labels", "annotations"]) yield* notTexts(metadata, map, "metadata.");
  if (apiVersion === "v1") {
    const [texts, bytes] = [TEXTS.get(kind), BYTES.get(kind)];
    if (texts !== undefined) yield* notTexts(object, texts);
    if (bytes !== undefined) yield* notBytes(object, bytes);
  }
}

function* notTexts(holder: JsonObject, field: string, prefix = ""): Generator<ProblemParts> {
  const map = holder[field] ?? {};
  if (!isObject(map)) return yield wrongAt(`${prefix}${field}`, "must be an object");
  for (const [key, value] of Object.entries(map))
    if (typeof value !== "string") yield wrongAt(`${prefix}${field}[${key}]`, TEXT_RULE);
}

function* notBytes(object: JsonObject, field: string): Generator<ProblemParts> {
  yield* notTexts(object, field);
  for (const [key, value] of Object.entries(fieldsAt(object, field)))
    if (typeof value === "string" && !BASE64.test(value.replace(/[\r\n]/g, "")))
      yield wrongAt(
        `${field}[${key}]`,
        "must be base64; write plain text into stringData of a Secret, or data of a ConfigMap",
      );
}

/** The object as the API server would store it. */
function completed(object: JsonObject, kinds: Kinds, defaultNamespace: string): KubeObject & JsonObject {
  const [apiVersion, kind] = [String(object["apiVersion"]), String(object["kind"])];
  const { namespace: given, uid = NO_UID, ...metadata } = withoutNulls(fieldsAt(object, "metadata"));
  const { namespaced } = kinds.resourceOf(apiVersion, kind);
  const namespace = namespaced ? { namespace: given ?? defaultNamespace } : {};
  const { stringData, ...rest } = object;
  const isSecret = apiVersion === "v1" && kind === "Secret" && isObject(stringData);
  const encoded = isSecret
    ? {
        data: { ...fieldsAt(object, "data"), ...mapValues(stringData, (text) => Buffer.from(text).toString("base64")) },
      }
    : {};
  return {
    ...(isSecret ? rest : object),
    ...encoded,
    apiVersion,
    kind,
    metadata: { resourceVersion: "0", ...metadata, ...namespace, uid },
  } as unknown as KubeObject & JsonObject;
}

/** The API server treats null as missing. */
const withoutNulls = (object: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null));

const mapValues = (map: JsonObject, make: (text: string) => string): JsonObject =>
  Object.fromEntries(Object.entries(map).map(([key, value]) => [key, make(String(value))]));
