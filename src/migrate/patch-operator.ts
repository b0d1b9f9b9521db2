/** Converts Patches and annotations of the patch-operator to bindings. Pure. */
import { fieldsAt } from "../apimachinery/fields.ts";
import { sameJson } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { apiValue, dataKeyOf, NotTranslated, type ObjectLookup, type Resolve, reference } from "./go-expression.ts";
import { translate } from "./go-template.ts";
import type { DataObject, KnownObjects } from "./known-objects.ts";
import { type Input, metadataOf, type Output, partOf, type Tool } from "./migration.ts";
import {
  accountNotes,
  compact,
  dataSource,
  elsewhere,
  isData,
  labelSelectorOf,
  objectName,
  sourceName,
} from "./parts.ts";
import { fieldsOfJsonPatch, fieldsOfPatch, patchedOf } from "./patch.ts";
import type { Tracked } from "./tracked.ts";

/** On the object that is patched when it is created, with the patch, and below it with `-type`. */
const ANNOTATION = "redhat-cop.redhat.io/patch";
const isPatchKind = (apiVersion: unknown): boolean => String(apiVersion).startsWith("redhatcop.redhat.io/");

export const PATCH_OPERATOR: Tool = {
  title: "patch-operator",
  objects: `Patches (redhatcop.redhat.io) and objects with the annotation ${ANNOTATION}`,
  owns: (object) =>
    isPatchKind(object["apiVersion"]) ||
    Object.keys(fieldsAt(object, "metadata", "annotations")).some((key) => key.startsWith("redhat-cop.redhat.io/")),
  convert(inputs, output, known) {
    for (const input of inputs) {
      if (!isPatchKind(input.apiVersion)) convertAnnotation(input, known, output);
      else if (input.kind === "Patch") convertPatches(input, known, output);
      else input.root.refuse(`Inlay does not know the kind ${input.kind}; check whether you need it`);
    }
  },
};

function convertPatches(input: Input, known: KnownObjects, output: Output): void {
  const spec = input.root.field("spec");
  const account = spec.field("serviceAccountRef", "name").text() ?? "default";
  const patches = spec.field("patches").entries();
  const single = spec.field("patch");
  const convert = (patch: Tracked, name: string) =>
    convertPatch(partOf(input, patch), patch, name, account, known, output);
  if (single.exists) convert(single, input.name);
  for (const [name, patch] of patches)
    convert(patch, patches.length === 1 && name === input.name ? name : `${input.name}-${name}`);
}

function convertPatch(
  input: Input,
  patch: Tracked,
  name: string,
  account: string,
  known: KnownObjects,
  output: Output,
): void {
  const sources: JsonObject[] = [];
  const granted: DataObject[] = [];
  const resolvers = patch
    .field("sourceObjectRefs")
    .list()
    .map((ref) => sourceOf(ref, input.namespace, known, granted, sources));
  const resolve: Resolve = ([at, ...path]) => {
    if (at === 0) throw new NotTranslated("a field of the target itself");
    const found = typeof at === "number" ? resolvers[at - 1] : undefined;
    if (found === undefined) throw new NotTranslated("a value that is no source");
    return found(path);
  };
  const [type, template] = patch.fields("patchType", "patchTemplate");
  const apiVersion = String(patch.field("targetObjectRef", "apiVersion").peek());
  const fields = fieldsFor(type, template, resolve, apiVersion);
  const target = targetOf(patch.field("targetObjectRef"), input, known);
  if (sources.length === 0)
    template.lose("a binding needs a source, and this patch has none; write its values into the object itself");
  if (sources.length === 0 || fields.length === 0) return;
  const spec = { serviceAccountName: account, sources, targets: [{ ...target, fields }] };
  const metadata = { name, namespace: input.namespace, ...metadataOf(input) };
  output.add("SecretBinding", metadata, spec, [input], accountNotes(account));
  for (const each of granted) output.grant(each, { namespace: input.namespace }, input);
}

const PATCH_TYPES = [
  "application/strategic-merge-patch+json",
  "application/merge-patch+json",
  "application/json-patch+json",
] as const;

function fieldsFor(type: Tracked, template: Tracked, resolve: Resolve, apiVersion: string): JsonObject[] {
  const { isOpen } = patchedOf(apiVersion);
  const text = type.oneOf(PATCH_TYPES, "unknown type of patch; correct it");
  if (text === "application/json-patch+json")
    return fieldsOfJsonPatch(template, (each) => translate(each, resolve), isOpen);
  return fieldsOfPatch(
    template,
    { lists: text === "application/merge-patch+json" ? "replace" : "merge", isOpen },
    resolve,
  );
}

const unknownScope = (kind: string): string =>
  `whether ${kind} has namespaces is unknown; add its CRD to the files. The target is converted as cluster-scoped`;

function targetOf(ref: Tracked, input: Input, known: KnownObjects): JsonObject {
  const [apiVersion = "", kind = "", name, namespace] = ref.textsOf("apiVersion", "kind", "name", "namespace");
  ref.refuseFields({
    annotationSelector:
      "a target selects objects by names and labels only; write a BindingComposition, which selects by annotations",
  });
  const selector = labelSelectorOf(ref.field("labelSelector"));
  const scope = known.isNamespaced(apiVersion, kind);
  if (scope === undefined && namespace === undefined) ref.field("kind").lose(unknownScope(kind));
  const everywhere = namespace === undefined && scope === true ? { names: ["*"] } : undefined;
  return compact({
    apiVersion,
    kind,
    ...(name === undefined || selector !== undefined
      ? { selector: { ...(name !== undefined && { names: [name] }), ...(selector ?? { names: ["*"] }) } }
      : { name }),
    namespace: elsewhere(namespace, input.namespace),
    namespaceSelector: everywhere,
  });
}

/** Adds the source, and returns what a path below it refers to. The source of a template that does not use it is harmless. */
function sourceOf(
  ref: Tracked,
  own: string,
  known: KnownObjects,
  granted: DataObject[],
  sources: JsonObject[],
): Resolve | undefined {
  const [apiVersion = "", kind = "", name = "", namespace = ""] = ref.textsOf(
    "apiVersion",
    "kind",
    "name",
    "namespace",
  );
  const fieldPath = ref.field("fieldPath");
  const below = /^\$?((?:\.[A-Za-z_][\w-]*)*)$/.exec(fieldPath.text() ?? "")?.[1];
  if (below === undefined) fieldPath.lose("a JSONPath with other parts than names; write from by hand");
  if (`${name}${namespace}`.includes("{{")) {
    ref.lose("the source depends on the target; write a BindingComposition, which creates a binding for each target");
    return undefined;
  }
  const source = sourceName(
    name,
    sources.map((each) => String(each["name"])),
  );
  const made = sourceIn({ apiVersion, kind, namespace, name }, source, own, known, granted);
  if (made === undefined) {
    ref.lose(OTHER_NAMESPACE);
    return undefined;
  }
  sources.push(made);
  const prefix = (below ?? "").split(".").filter((key) => key !== "");
  return (path) => fieldOf(kind, apiVersion, source, [...prefix, ...path.map(String)]);
}

const OTHER_NAMESPACE =
  "a binding reads objects of its own namespace, and only Secrets and ConfigMaps of others; write a binding in that namespace";

/** The source of a binding in `own`. Undefined for an object that such a binding can't read. Adds what it needs a grant for. */
function sourceIn(
  { apiVersion, kind, namespace, name }: ObjectLookup,
  source: string,
  own: string,
  known: KnownObjects,
  granted: DataObject[],
): JsonObject | undefined {
  const scope = known.isNamespaced(apiVersion, kind);
  const isOther = namespace !== "" && namespace !== own && scope !== false;
  if (isData(apiVersion, kind)) {
    const object = { kind, namespace: namespace === "" ? own : namespace, name };
    granted.push(object);
    return dataSource(object, own, source);
  }
  if (isOther) return undefined;
  const isCluster = scope === false || (scope === undefined && namespace === "");
  const resource = known.kinds.resourceOf(apiVersion, kind).plural;
  return {
    name: source,
    object: compact({ apiVersion, resource, name, scope: isCluster ? "Cluster" : undefined }),
  };
}

function fieldOf(kind: string, apiVersion: string, source: string, keys: readonly string[]) {
  if (!isData(apiVersion, kind)) {
    if (keys.length === 0) throw new NotTranslated("a whole object");
    return reference(source, keys, true);
  }
  return apiValue(kind, source, dataKeyOf(kind, keys));
}

const ONCE =
  "The patch-operator wrote these values when the object was created, and so does this binding. Remove mode to write changes of the values, too.";
const REMOVE =
  "Remove the annotation, and the fields that the binding writes, from your manifest. Otherwise the reason is Conflict.";

/** A patch in an annotation of the object that it changes. Its sources are the objects that it looks up. */
function convertAnnotation(input: Input, known: KnownObjects, output: Output): void {
  const { root, apiVersion, kind } = input;
  const metadata = root.field("metadata");
  const annotations = metadata.field("annotations");
  root.ignoreUnless((key) => key === "metadata");
  metadata.ignoreUnless((key) => key === "annotations");
  annotations.ignoreUnless((key) => key.startsWith("redhat-cop.redhat.io/"));
  const [template, type] = annotations.fields(ANNOTATION, `${ANNOTATION}-type`);
  const [name, named] = metadata.textsOf("name", "namespace");
  const looked: { source: string; object: ObjectLookup }[] = [];
  const resolve: Resolve = Object.assign(
    ([first, ...path]: readonly (string | number)[]) => {
      const found = typeof first === "number" ? looked[first] : undefined;
      if (found !== undefined)
        return fieldOf(found.object.kind, found.object.apiVersion, found.source, path.map(String));
      const steps = [first, ...path].join(".");
      const own = steps === "metadata.name" ? name : steps === "metadata.namespace" ? named : undefined;
      if (own === undefined) throw new NotTranslated("a field of the object itself");
      return { kind: "literal", value: own } as const;
    },
    {
      lookup: (object: ObjectLookup) => {
        if (object.name === "") throw new NotTranslated("lookup of all objects of a kind");
        const known = looked.findIndex((each) => sameJson(each.object, object));
        if (known >= 0) return known;
        const source = sourceName(
          object.name,
          looked.map((each) => each.source),
        );
        return looked.push({ source, object }) - 1;
      },
    },
  );
  const fields = fieldsFor(type, template, resolve, apiVersion);
  const scope = named !== undefined || (input.namespace !== "" && known.isNamespaced(apiVersion, kind));
  if (scope === undefined) root.field("kind").lose(unknownScope(kind));
  const ofSecrets = looked.map(({ object }) => object.namespace).find((each) => each !== "");
  const namespace = scope === true ? (named ?? known.namespace) : (ofSecrets ?? known.namespace);
  const granted: DataObject[] = [];
  const sources = looked.flatMap(({ source, object }) => {
    const made = sourceIn(object, source, namespace, known, granted);
    if (made === undefined) template.lose(OTHER_NAMESPACE);
    return made ?? [];
  });
  if (sources.length === 0)
    template.lose(
      "a binding needs a source, and this patch looks up no object; write its values into the object itself",
    );
  if (name === undefined) metadata.lose("the object has no name; write the binding by hand");
  if (sources.length === 0 || fields.length === 0 || name === undefined) return;
  const spec = { sources, targets: [{ apiVersion, kind, name, mode: "Once", fields }] };
  output.add("SecretBinding", { name: objectName(`${kind}-${name}`), namespace }, spec, [input], [ONCE, REMOVE]);
  for (const each of granted) output.grant(each, { namespace }, input);
}
