/** The target of the binding for an ExternalSecret: the object, and a field for each value or template. Pure. */
import { FieldPath } from "../apimachinery/field-path.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { propertyOf, type Sources } from "./external-sources.ts";
import type { Store } from "./external-stores.ts";
import { type Expression, NotTranslated, type Resolve, reference } from "./go-expression.ts";
import { fieldValue } from "./go-template.ts";
import { compact, keyPath, templateField } from "./parts.ts";
import { fieldsOfPatch, patchedOf } from "./patch.ts";
import type { Tracked } from "./tracked.ts";

export interface Target {
  readonly object: JsonObject;
  readonly create: JsonObject | undefined;
  readonly onRelease: string | undefined;
  readonly removesKeys: boolean;
  readonly fields: JsonObject[];
  readonly notes: string[];
}

export interface Lookup {
  storeOf(ref: Tracked): Store | undefined;
  readonly sources: Sources;
}

export function targetOf(spec: Tracked, defaultName: string, metadata: JsonObject, lookup: Lookup): Target {
  const target = spec.field("target");
  const template = target.field("template");
  const manifest = target.field("manifest");
  const [apiVersion = "v1", kind = "Secret"] = [manifest.field("apiVersion").text(), manifest.field("kind").text()];
  const values = valuesOf(spec, lookup);
  const whole = allOf(spec, lookup);
  const [all, ...others] = whole;
  const resolve = resolverOf(values, all?.source);
  const templates = fieldsOfTemplate(template, resolve, apiVersion);
  const isMerged = template.field("mergePolicy").text() === "Merge";
  const isData = apiVersion === "v1" && (kind === "Secret" || kind === "ConfigMap");
  const templated = keysOfTemplate(template);
  const usesValues = templated === undefined || isMerged;
  // The value itself does not take the place of a template that is not converted.
  const untouched = usesValues ? [...values].filter(([key]) => templated?.has(key) !== true) : [];
  const fields = [
    ...untouched.map(([key, value]) => ({ path: keyPath("data", key), ...fieldValue([value]) })),
    ...templates,
  ];
  const copiesAll = usesValues && all !== undefined && fields.length === 0 && templated === undefined;
  for (const { place } of usesValues && !copiesAll ? whole : [])
    place.lose("a target has either all data or single keys; add a field for each key that your programs read");
  if (usesValues && !isData)
    manifest.lose("Inlay does not know where this kind has the values; write the paths of the fields by hand");
  const policy = target.field("creationPolicy");
  const creation = policy.text() ?? "Owner";
  if (creation === "None") policy.lose("with None, nothing is written; remove the ExternalSecret");
  else if (!["Owner", "Orphan", "Merge"].includes(creation))
    policy.lose("must be Owner, Orphan, Merge or None; correct it");
  const deletion = target.field("deletionPolicy");
  if (deletion.text() === "Delete")
    deletion.lose("Inlay keeps an object whose values are missing, or removes their keys with onMissing: Remove");
  if (target.field("immutable").flag() === true)
    target
      .field("immutable")
      .lose("Inlay could not update an immutable Secret; set mode: Once, and immutable in create.manifest");
  const made = manifestOf(template, metadata, kind);
  // Otherwise Inlay copies the type of a Secret.
  if (copiesAll && all?.isSecret && kind === "Secret") made["type"] ??= "Opaque";
  return {
    object: { apiVersion, kind, name: target.field("name").text() ?? defaultName },
    create: creation === "Merge" ? undefined : { adopt: "Any", manifest: made },
    onRelease: creation === "Orphan" ? "Retain" : undefined,
    removesKeys: deletion.text() === "Merge",
    fields: copiesAll && all !== undefined ? [{ path: "data", from: fromAll(all, others) }] : fields,
    notes: [...values.values()].some(isEither)
      ? [
          "A property with a dot is the name of a key if there is one, and otherwise a path in JSON. If you know which, set from with the key, or with key and pointer, instead of the template with default.",
        ]
      : [],
  };
}

const NO_STORE = "its store has no counterpart in Inlay; keep External Secrets for this value";

const isEither = (value: Expression): boolean =>
  value.kind === "call" && (value.helper === "default" || value.args.some(isEither));

/** `spec.data`: a value for each key of the Secret. */
function valuesOf(spec: Tracked, { storeOf, sources }: Lookup): Map<string, Expression> {
  const values = new Map<string, Expression>();
  for (const each of spec.field("data").list()) {
    const [key = "", ref] = [each.field("secretKey").text(), each.field("remoteRef")];
    each.field("sourceRef", "generatorRef").refuse("Inlay has no generators; keep External Secrets for this value");
    const store = storeOf(each.field("sourceRef", "storeRef"));
    const source = store === undefined ? undefined : sources.add(ref, store);
    const value = source === undefined || store === undefined ? undefined : propertyOf(ref, source, store);
    if (value !== undefined) values.set(key, value);
    else if (source === undefined) ref.refuse(NO_STORE);
  }
  return values;
}

interface All {
  readonly source: string;
  readonly place: Tracked;
  /** It is a Secret of the cluster. */
  readonly isSecret: boolean;
}

const fromAll = ({ source }: All, others: readonly All[]): JsonObject => {
  const sources = [...new Set([source, ...others.map((each) => each.source)])];
  return sources.length === 1 ? { source } : { sources, onCollision: "LaterWins" };
};

/** `spec.dataFrom`: all keys of a source. */
function allOf(spec: Tracked, { storeOf, sources }: Lookup): All[] {
  return spec
    .field("dataFrom")
    .list()
    .flatMap((each) => {
      const [extract, ref] = [each.field("extract"), each.field("sourceRef")];
      each.field("find").refuse("Inlay reads secrets by their exact paths; add a source for each");
      each.field("rewrite").refuse("Inlay does not rename keys; write a field for each key");
      ref.field("generatorRef").refuse("Inlay has no generators; keep External Secrets for these values");
      const store = storeOf(ref.field("storeRef"));
      if (!extract.exists || store === undefined || store.provider === "other") {
        extract.refuse(NO_STORE);
        return [];
      }
      extract
        .field("property")
        .refuse("Inlay copies all keys of a path; write a field with key and pointer for each nested value");
      const decoding = extract.field("decodingStrategy");
      if ((decoding.text() ?? "None") !== "None")
        decoding.lose("Inlay copies all keys unchanged; write a field with base64decode for each key");
      const source = sources.add(extract, store);
      return source === undefined ? [] : [{ source, place: each, isSecret: store.provider === "kubernetes" }];
    });
}

/** Templates read `.key`, which is a key of the Secret. */
function resolverOf(values: ReadonlyMap<string, Expression>, all: string | undefined): Resolve {
  return ([key, ...more]) => {
    const found =
      typeof key === "string" && more.length === 0
        ? (values.get(key) ?? (all === undefined ? undefined : reference(all, [key])))
        : undefined;
    if (found === undefined) throw new NotTranslated("a value that is no key of data or dataFrom");
    return found;
  };
}

/** The keys of data that a template writes, whether or not it can be converted. Undefined without templates. */
function keysOfTemplate(template: Tracked): Set<string> | undefined {
  const [data, from] = [template.field("data").peek(), template.field("templateFrom").peek()];
  const literals = (Array.isArray(from) ? from : []).map((each) => (isObject(each) ? String(each["literal"]) : ""));
  const keys = [
    ...Object.keys(isObject(data) ? data : {}),
    ...literals.flatMap((text) => [...text.matchAll(/^[ \t]*["']?([-.\w]+)["']?[ \t]*:/gm)].map(([, key = ""]) => key)),
  ];
  return keys.length > 0 || literals.length > 0 ? new Set(keys) : undefined;
}

const PLACES: Readonly<Record<string, string>> = {
  Data: "data",
  Annotations: "metadata.annotations",
  Labels: "metadata.labels",
};

function fieldsOfTemplate(template: Tracked, resolve: Resolve, apiVersion: string): JsonObject[] {
  const { isOpen } = patchedOf(apiVersion);
  const engine = template.field("engineVersion");
  if ((engine.text() ?? "v2") !== "v2") engine.lose("templates of engine v1 get bytes; write the fields by hand");
  template
    .field("metadata", "finalizers")
    .refuse("a manifest has no finalizers; add them by hand if another program needs them");
  const inline = template
    .field("data")
    .entries()
    .flatMap(([key, value]) => templateField(keyPath("data", key), value, resolve));
  const more = template
    .field("templateFrom")
    .list()
    .flatMap((each) => {
      for (const kind of ["configMap", "secret"])
        each.field(kind).refuse("Inlay reads no templates from objects; write them to the fields of the binding");
      const target = each.field(each.field("manifestTarget").exists ? "manifestTarget" : "target").text() ?? "Data";
      const path = attemptSync(() => FieldPath.parse(PLACES[target] ?? target));
      if (!(path instanceof Problem))
        return fieldsOfPatch(each.field("literal"), { lists: "replace", isOpen }, resolve, path.segments);
      each.lose("the target is no path of Inlay; write these fields by hand");
      return [];
    });
  return [...inline, ...more];
}

/** Without metadata in the template, the object gets that of the ExternalSecret. */
function manifestOf(template: Tracked, metadata: JsonObject, kind: string): JsonObject {
  const own = template.field("metadata");
  const labels = own.field("labels").map();
  const annotations = own.field("annotations").map();
  for (const [name, map] of Object.entries({ labels, annotations }))
    for (const [key, value] of Object.entries(map ?? {}))
      if (value.includes("{{"))
        own.field(name, key).lose(`a manifest has no templates; write a field with the path metadata.${name}`);
  const used = template.field("metadata").exists ? compact({ labels, annotations }) : metadata;
  const type = template.field("type").text();
  return compact({
    type: kind === "Secret" ? type : undefined,
    metadata: Object.keys(used).length > 0 ? used : undefined,
  });
}
