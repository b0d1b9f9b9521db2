/** Converts the objects of the External Secrets Operator to bindings, and its stores to connections. Pure. */
import { FieldPath } from "../apimachinery/field-path.ts";
import { fieldsAt } from "../apimachinery/fields.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { copyBinding, copyCreate, copyFields } from "./copies.ts";
import { propertyOf, Sources } from "./external-sources.ts";
import { findStore, type Store, storeOf, writeConnections } from "./external-stores.ts";
import { type Expression, NotTranslated, type Resolve, reference } from "./go-expression.ts";
import { fieldValue } from "./go-template.ts";
import type { KnownObjects, ObjectName } from "./known-objects.ts";
import { type Input, metadataOf, type Output, type Tool } from "./migration.ts";
import { compact, elsewhere, filled, isData, keyPath, labelSelectorOf, refreshOf, templateField } from "./parts.ts";
import { fieldsOfPatch, patchedOf } from "./patch.ts";
import type { Tracked } from "./tracked.ts";

interface Target {
  readonly target: JsonObject;
  readonly fields: readonly JsonObject[];
  readonly removesKeys: boolean;
  readonly notes: string[];
}

interface Lookup {
  storeOf(ref: Tracked): Store | undefined;
  readonly sources: Sources;
}

/** `defaults` are the name and metadata of the object if the spec sets none, and the mode. */
function targetOf(
  spec: Tracked,
  defaults: { readonly name: string; readonly metadata: JsonObject; readonly mode: "Once" | undefined },
  lookup: Lookup,
): Target {
  const written = spec.field("target");
  const [template, manifest, policy, deletion, immutable] = written.fields(
    "template",
    "manifest",
    "creationPolicy",
    "deletionPolicy",
    "immutable",
  );
  const [apiVersion = "v1", kind = "Secret"] = manifest.textsOf("apiVersion", "kind");
  const values = valuesOf(spec, lookup);
  const whole = allOf(spec, lookup);
  const [all] = whole;
  const resolve = resolverOf(values, all?.source);
  const templates = fieldsOfTemplate(template, resolve, apiVersion);
  const isMerged = template.field("mergePolicy").text() === "Merge";
  const templated = keysOfTemplate(template);
  const usesValues = templated === undefined || isMerged;
  // The value itself does not take the place of a template that is not converted.
  const untouched = usesValues ? [...values].filter(([key]) => templated?.has(key) !== true) : [];
  const single = [
    ...untouched.map(([key, value]) => ({ path: keyPath("data", key), ...fieldValue([value]) })),
    ...templates,
  ];
  const copiesAll = usesValues && all !== undefined && single.length === 0 && templated === undefined;
  const fields = copiesAll ? [{ path: "data", from: fromAll(whole) }] : single;
  for (const { place } of usesValues && !copiesAll ? whole : [])
    place.lose("a target has either all data or single keys; add a field for each key that your programs read");
  if (usesValues && !isData(apiVersion, kind))
    manifest.lose("Inlay does not know where this kind has the values; write the paths of the fields by hand");
  const policies = ["Owner", "Orphan", "Merge", "None"] as const;
  const creation = policy.oneOf(policies, "must be Owner, Orphan, Merge or None; correct it");
  if (creation === "None") policy.lose("with None, nothing is written; remove the ExternalSecret");
  if (deletion.text() === "Delete")
    deletion.lose("Inlay keeps an object whose values are missing, or removes their keys with onMissing: Remove");
  if (immutable.flag() === true)
    immutable.lose("Inlay could not update an immutable Secret; set mode: Once, and immutable in create.manifest");
  const manifested = templatedManifest(template, defaults.metadata, kind);
  // Otherwise Inlay copies the type of a Secret.
  if (copiesAll && all.isSecret && kind === "Secret") manifested["type"] ??= "Opaque";
  const target = compact({
    apiVersion,
    kind,
    name: written.field("name").text() ?? defaults.name,
    mode: defaults.mode,
    onRelease: creation === "Orphan" ? "Retain" : undefined,
    onConflict: "Force",
    create: creation === "Merge" ? undefined : { adopt: "Any", manifest: manifested },
    fields,
  });
  const notes = [...(creation === "Merge" ? [] : [DELETE]), ...([...values.values()].some(isEither) ? [EITHER] : [])];
  return { target, fields, removesKeys: deletion.text() === "Merge", notes };
}

const DELETE =
  "Delete the ExternalSecret with kubectl delete --cascade=orphan, after this binding is ready. Otherwise, Kubernetes deletes the Secret with it.";
const EITHER =
  "A property with a dot is the name of a key if there is one, and otherwise a path in JSON. If you know which, set from with the key, or with key and pointer, instead of the template with default.";
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

const fromAll = (all: readonly All[]): JsonObject => {
  const [source = "", ...others] = new Set(all.map((each) => each.source));
  return others.length === 0 ? { source } : { sources: [source, ...others], onCollision: "LaterWins" };
};

/** `spec.dataFrom`: all keys of a source. */
function allOf(spec: Tracked, { storeOf, sources }: Lookup): All[] {
  return spec
    .field("dataFrom")
    .list()
    .flatMap((each) => {
      const [extract, ref] = each.fields("extract", "sourceRef");
      each.refuseFields({
        find: "Inlay reads secrets by their exact paths; add a source for each",
        rewrite: "Inlay does not rename keys; write a field for each key",
      });
      ref.field("generatorRef").refuse("Inlay has no generators; keep External Secrets for these values");
      const store = storeOf(ref.field("storeRef"));
      if (!extract.exists || store === undefined || store.provider === "other") {
        extract.refuse(NO_STORE);
        return [];
      }
      extract
        .field("property")
        .refuse("Inlay copies all keys of a path; write a field with key and pointer for each nested value");
      extract
        .field("decodingStrategy")
        .oneOf(["None"], "Inlay copies all keys unchanged; write a field with base64decode for each key");
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
  template.field("engineVersion").oneOf(["v2"], "templates of engine v1 get bytes; write the fields by hand");
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
      const message = "Inlay reads no templates from objects; write them to the fields of the binding";
      each.refuseFields({ configMap: message, secret: message });
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
function templatedManifest(template: Tracked, metadata: JsonObject, kind: string): JsonObject {
  const own = template.field("metadata");
  const [labels, annotations] = own.fields("labels", "annotations").map((each) => each.map());
  for (const [name, map] of Object.entries({ labels, annotations }))
    for (const [key, value] of Object.entries(map ?? {}))
      if (value.includes("{{"))
        own.field(name, key).lose(`a manifest has no templates; write a field with the path metadata.${name}`);
  const type = template.field("type").text();
  return compact({
    type: kind === "Secret" ? type : undefined,
    metadata: filled(own.exists ? { labels, annotations } : metadata),
  });
}

/** A new Secret gets the type, labels and annotations of the pushed one. */
const RULE = { labels: true, annotations: true };

function pushSecret(input: Input, stores: readonly Store[], known: KnownObjects, output: Output): void {
  const spec = input.root.field("spec");
  // Inlay writes each change at once.
  spec.field("refreshInterval").ignore();
  const refs = spec.field("secretStoreRefs").list();
  const found = refs.map((ref) => ({ ref, store: findStore(ref, input, stores) }));
  const used = found.flatMap(({ store }) => (store?.provider === "kubernetes" ? [store.input] : []));
  const namespaces = found.flatMap(({ ref, store }) => {
    if (store?.provider === "kubernetes") return [store.namespace];
    if (store !== undefined)
      ref.lose("Inlay writes objects of the cluster, and nothing to other stores; keep External Secrets for this one");
    return [];
  });
  const name = spec.field("selector", "secret", "name").text();
  const isOnce =
    spec.field("updatePolicy").oneOf(["Replace", "IfNotExists"], "must be Replace or IfNotExists; correct it") ===
    "IfNotExists";
  const deletes = spec.field("deletionPolicy").text() === "Delete";
  const pushed = new Map<string, JsonObject[]>();
  for (const each of spec.field("data").list()) {
    const [key, remote] = [each.field("match", "secretKey").text(), each.field("match", "remoteRef")];
    const [object = "", property] = remote.textsOf("remoteKey", "property");
    each.field("conversionStrategy").oneOf(["None"], "Inlay does not rename keys; write a field for each key");
    if (key === undefined && property !== undefined) {
      remote
        .field("property")
        .lose("without secretKey, the value is all data as JSON, which a field can't be; write a template");
      continue;
    }
    const fields =
      key === undefined ? copyFields() : [{ path: keyPath("data", property ?? key), from: { source: "source", key } }];
    pushed.set(object, [...(pushed.get(object) ?? []), ...fields]);
  }
  if (name === undefined)
    spec.field("selector").lose("Inlay copies a Secret that has a name; write a binding for each Secret");
  if (name === undefined || namespaces.length === 0 || pushed.size === 0) return;
  const source = { kind: "Secret", namespace: input.namespace, name };
  const isWhole = (fields: readonly JsonObject[]) => fields.some(({ path }) => path === "data");
  const manifest = [...pushed.values()].every(isWhole)
    ? {}
    : manifestOf(source, known, spec.field("selector", "secret", "name"));
  const createOf = (fields: readonly JsonObject[]) => {
    const { adopt: _, ...create } = isWhole(fields) ? copyCreate(RULE) : { manifest };
    return isOnce ? create : { adopt: "Any", ...create };
  };
  const targets = namespaces.flatMap((namespace) =>
    [...pushed].map(([object, fields]) =>
      compact({
        apiVersion: "v1",
        kind: "Secret",
        name: object,
        namespace: elsewhere(namespace, input.namespace),
        mode: isOnce ? "Once" : undefined,
        onRelease: deletes ? undefined : "Retain",
        create: createOf(fields),
        fields,
      }),
    ),
  );
  const metadata = { name: input.name, namespace: input.namespace, ...metadataOf(input) };
  output.add("SecretBinding", metadata, copyBinding(source, input.namespace, targets), [input, ...used]);
}

/** What programs note on a source for themselves. */
const OWN_NOTES = /^(?:kubectl\.kubernetes\.io|generate\.kyverno\.io)\//;

/** The manifest for single keys, which inherit nothing from their source. */
function manifestOf(source: ObjectName, known: KnownObjects, place: Tracked): JsonObject {
  const found = known.find(source);
  if (found === undefined)
    place.lose(
      `${source.kind} ${source.namespace}/${source.name} is not in these files, so its type, labels and annotations are unknown; add it to the files, set --cluster, or write them to create.manifest`,
    );
  const copied = (field: string) =>
    filled(
      Object.fromEntries(Object.entries(fieldsAt(found, "metadata", field)).filter(([key]) => !OWN_NOTES.test(key))),
    );
  const type = found?.["type"];
  return compact({
    type: typeof type === "string" ? type : undefined,
    metadata: filled({ labels: copied("labels"), annotations: copied("annotations") }),
  });
}

export const EXTERNAL_SECRETS: Tool = {
  title: "External Secrets",
  objects: "ExternalSecrets and SecretStores",
  owns: ({ apiVersion }) => /^(?:[a-z]+\.)?external-secrets\.io\//.test(String(apiVersion)),
  convert(inputs, output, known) {
    const stores = inputs.filter(({ kind }) => /^(?:Cluster)?SecretStore$/.test(kind)).map(storeOf);
    for (const input of inputs) {
      if (input.kind === "ExternalSecret") externalSecret(input, input.root.field("spec"), stores, output);
      else if (input.kind === "ClusterExternalSecret") clusterExternalSecret(input, stores, output);
      else if (input.kind === "PushSecret") pushSecret(input, stores, known, output);
      else if (!/^(?:Cluster)?SecretStore$/.test(input.kind))
        input.root.refuse(`Inlay has nothing for a ${input.kind}; keep External Secrets for it`);
    }
    writeConnections(stores, output);
  },
};

/** Where the Secret is written, if it is not the namespace of the ExternalSecret. */
interface Placement {
  readonly namespace: string;
  readonly selectors: readonly JsonObject[];
  readonly name: string;
}

function externalSecret(
  input: Input,
  spec: Tracked,
  stores: readonly Store[],
  output: Output,
  placement?: Placement,
): void {
  const byDefault = findStore(spec.field("secretStoreRef"), input, stores);
  const namespace = placement?.namespace ?? input.namespace;
  const interval = spec.field("refreshInterval");
  const refresh = refreshOf(interval);
  const policy = spec.field("refreshPolicy");
  const isOnce = policy.text() === "CreatedOnce" || /^0+[a-z]*$/.test(interval.text() ?? "");
  if (policy.text() === "OnChange")
    policy.lose("Inlay writes each change of the values; set mode: Once to write them once");
  const sources = new Sources(namespace, refresh);
  const metadata = metadataOf(input);
  const used = new Set<Input>();
  const defaults = {
    name: placement?.name ?? input.name,
    metadata: placement === undefined ? metadata : {},
    mode: isOnce ? ("Once" as const) : undefined,
  };
  const storeOf = (ref: Tracked) => {
    const store = ref.exists ? findStore(ref, input, stores) : byDefault;
    // It becomes no VaultConnection, but a part of the binding.
    if (store?.provider === "kubernetes") used.add(store.input);
    return store;
  };
  const { target, fields, removesKeys, notes } = targetOf(spec, defaults, { storeOf, sources });
  if (sources.list.length === 0 || fields.length === 0 || placement?.selectors.length === 0) return;
  sources.grantTo(input, output);
  const binding = compact({
    acknowledge: placement === undefined ? undefined : ["ReadableCopies"],
    defaults: removesKeys ? { onMissing: "Remove" } : undefined,
    sources: sources.list,
    targets: placement?.selectors.map((namespaceSelector) => ({ ...target, namespaceSelector })) ?? [target],
  });
  output.add("SecretBinding", { name: input.name, namespace, ...metadata }, binding, [input, ...used], notes);
}

/** One binding, in the namespace of the values, copies into all namespaces. */
function clusterExternalSecret(input: Input, stores: readonly Store[], output: Output): void {
  const spec = input.root.field("spec");
  spec.field("refreshTime").ignore();
  const inner = spec.field("externalSecretSpec");
  const store = findStore(inner.field("secretStoreRef"), input, stores);
  if (store === undefined || store.provider === "other") return;
  spec
    .field("externalSecretMetadata")
    .refuse("the Secrets get the labels and annotations of the template; write them to create.manifest.metadata");
  const single = spec.field("namespaceSelector");
  const names = spec.field("namespaces").texts();
  const selectors = [single, ...spec.field("namespaceSelectors").list()].flatMap((each): JsonObject[] => {
    if (JSON.stringify(each.peek()) !== "{}")
      return [labelSelectorOf(each)].filter((selector) => selector !== undefined);
    each.ignore();
    return [{ names: ["*"] }];
  });
  const all = [...selectors, ...(names.length > 0 ? [{ names }] : [])];
  if (all.length === 0) spec.lose("it selects no namespace; write namespaceSelector, and convert again");
  const name = spec.field("externalSecretName").text() ?? input.name;
  const placement = { namespace: store.namespace, selectors: all, name };
  externalSecret(input, inner, stores, output, placement);
}
