/** Converts Patches of the patch-operator to bindings. Pure. */
import { isObject } from "../apimachinery/json.ts";
import { type JsonObject, parseApiVersion } from "../apimachinery/objects.ts";
import { isCrd, type Kinds, kindsOf } from "../render/kinds.ts";
import { call, NotTranslated, type Resolve, reference } from "./go-expression.ts";
import { translate } from "./go-template.ts";
import { Grants } from "./grants.ts";
import { type Input, metadataOf, type Output, type Tool } from "./migration.ts";
import { compact, labelSelectorOf, sourceField, sourceName } from "./parts.ts";
import { fieldsOfJsonPatch, fieldsOfPatch } from "./patch.ts";
import type { Tracked } from "./tracked.ts";

export const PATCH_OPERATOR: Tool = {
  title: "patch-operator",
  objects: "Patches (redhatcop.redhat.io)",
  owns: ({ apiVersion }) => String(apiVersion).startsWith("redhatcop.redhat.io/"),
  convert(inputs, output, all) {
    const grants = new Grants();
    const scopes: Scopes = { kinds: kindsOf(all), crds: all.filter(isCrd) };
    for (const input of inputs) {
      if (input.kind !== "Patch") {
        input.root.refuse(`Inlay does not know the kind ${input.kind}; check whether you need it`);
        continue;
      }
      const spec = input.root.field("spec");
      const account = spec.field("serviceAccountRef", "name").text() ?? "default";
      const patches = spec.field("patches").entries();
      const single = spec.field("patch");
      if (single.exists) convertPatch(input, single, input.name, account, scopes, grants, output);
      for (const [name, patch] of patches)
        convertPatch(
          input,
          patch,
          patches.length === 1 && name === input.name ? name : `${input.name}-${name}`,
          account,
          scopes,
          grants,
          output,
        );
    }
    grants.write(output);
  },
};

interface Scopes {
  readonly kinds: Kinds;
  readonly crds: readonly JsonObject[];
}

/** Whether objects of the kind have a namespace. Undefined if no file has the CRD. */
function isNamespaced({ kinds, crds }: Scopes, apiVersion: string, kind: string): boolean | undefined {
  const { group } = parseApiVersion(apiVersion);
  const isKnown =
    !group.includes(".") ||
    group.endsWith(".k8s.io") ||
    crds.some((crd) => isObject(crd["spec"]) && crd["spec"]["group"] === group);
  return isKnown ? kinds.resourceOf(apiVersion, kind).namespaced : undefined;
}

function convertPatch(
  input: Input,
  patch: Tracked,
  name: string,
  account: string,
  scopes: Scopes,
  grants: Grants,
  output: Output,
): void {
  const sources: JsonObject[] = [];
  const resolvers = patch
    .field("sourceObjectRefs")
    .list()
    .map((ref) => sourceOf(ref, input, scopes, grants, sources));
  const resolve: Resolve = ([at, ...path]) => {
    if (at === 0) throw new NotTranslated("a field of the target itself");
    const found = typeof at === "number" ? resolvers[at - 1] : undefined;
    if (found === undefined) throw new NotTranslated("a value that is no source");
    return found(path);
  };
  const type = patch.field("patchType");
  const template = patch.field("patchTemplate");
  const fields = fieldsFor(type, template, resolve);
  const target = targetOf(patch.field("targetObjectRef"), input, scopes);
  if (sources.length === 0)
    template.lose("a binding needs a source, and this patch has none; write its values into the object itself");
  if (sources.length === 0 || fields.length === 0) return;
  const notes = account === "inlay" ? [] : [`Allow Inlay to impersonate ${account}: docs/tasks/allow-a-namespace.md.`];
  const spec = { serviceAccountName: account, sources, targets: [{ ...target, fields }] };
  output.add("SecretBinding", { name, namespace: input.namespace, ...metadataOf(input) }, spec, [input], notes);
}

function fieldsFor(type: Tracked, template: Tracked, resolve: Resolve): JsonObject[] {
  const text = type.text() ?? "application/strategic-merge-patch+json";
  if (text === "application/json-patch+json") return fieldsOfJsonPatch(template, (each) => translate(each, resolve));
  if (text === "application/merge-patch+json") return fieldsOfPatch(template, "replace", resolve);
  if (text !== "application/strategic-merge-patch+json") type.lose("unknown type of patch; correct it");
  return fieldsOfPatch(template, "merge", resolve);
}

function targetOf(ref: Tracked, input: Input, scopes: Scopes): JsonObject {
  const [apiVersion = "", kind = "", name, namespace] = ["apiVersion", "kind", "name", "namespace"].map((field) =>
    ref.field(field).text(),
  );
  ref
    .field("annotationSelector")
    .refuse(
      "a target selects objects by names and labels only; write a BindingComposition, which selects by annotations",
    );
  const selector = labelSelectorOf(ref.field("labelSelector"));
  const scope = isNamespaced(scopes, apiVersion, kind);
  if (scope === undefined && namespace === undefined)
    ref
      .field("kind")
      .lose(
        `whether ${kind} has namespaces is unknown; add its CRD to the files. The target is converted as cluster-scoped`,
      );
  const everywhere = namespace === undefined && scope === true ? { names: ["*"] } : undefined;
  return compact({
    apiVersion,
    kind,
    ...(name === undefined || selector !== undefined
      ? { selector: { ...(name !== undefined && { names: [name] }), ...(selector ?? { names: ["*"] }) } }
      : { name }),
    namespace: namespace === input.namespace ? undefined : namespace,
    namespaceSelector: everywhere,
  });
}

/** Adds the source, and returns what a path below it refers to. The source of a template that does not use it is harmless. */
function sourceOf(
  ref: Tracked,
  input: Input,
  scopes: Scopes,
  grants: Grants,
  sources: JsonObject[],
): Resolve | undefined {
  const [apiVersion = "", kind = "", name = "", namespace] = ["apiVersion", "kind", "name", "namespace"].map((field) =>
    ref.field(field).text(),
  );
  const fieldPath = ref.field("fieldPath");
  const below = /^\$?((?:\.[A-Za-z_][\w-]*)*)$/.exec(fieldPath.text() ?? "")?.[1];
  if (below === undefined) fieldPath.lose("a JSONPath with other parts than names; write from by hand");
  const scope = isNamespaced(scopes, apiVersion, kind);
  const isOther = namespace !== undefined && namespace !== input.namespace && scope !== false;
  const isData = apiVersion === "v1" && (kind === "Secret" || kind === "ConfigMap");
  if (`${name}${namespace}`.includes("{{")) {
    ref.lose("the source depends on the target; write a BindingComposition, which creates a binding for each target");
    return undefined;
  }
  if (isOther && !isData) {
    ref.lose(
      "a binding reads objects of its own namespace, and only Secrets and ConfigMaps of others; write a binding in that namespace",
    );
    return undefined;
  }
  const source = sourceName(
    name,
    sources.map((each) => String(each["name"])),
  );
  if (isData) {
    sources.push({
      name: source,
      [sourceField(kind)]: compact({ name, namespace: isOther ? namespace : undefined }),
    });
    if (isOther) grants.add({ kind, namespace: namespace as string, name }, { namespace: input.namespace }, input);
  } else {
    const resource = scopes.kinds.resourceOf(apiVersion, kind).plural;
    sources.push({
      name: source,
      object: compact({ apiVersion, resource, name, scope: scope === false ? "Cluster" : undefined }),
    });
  }
  const prefix = (below ?? "").split(".").filter((key) => key !== "");
  return (path) => {
    const keys = [...prefix, ...path.map(String)];
    if (!isData) {
      if (keys.length === 0) throw new NotTranslated("a whole object");
      return reference(source, keys, true);
    }
    const [data, key, ...more] = keys;
    if (data !== "data" || key === undefined || more.length > 0)
      throw new NotTranslated(`a field of a ${kind} that is no key of its data`);
    // In the API, the values of a Secret are encoded.
    return kind === "Secret" ? call("base64", reference(source, [key])) : reference(source, [key]);
  };
}
