/** Reads what the bindings in files depend on from a cluster: claims of compositions, namespaces and connections to stores. */
import { at, fieldsAt } from "../apimachinery/fields.ts";
import { stringifyJson } from "../apimachinery/json.ts";
import { apiVersionOf, isSameKind, type JsonObject, type KubeObject } from "../apimachinery/objects.ts";
import { NAMESPACES } from "../apimachinery/resources.ts";
import { withAdvice } from "../explain/reading.ts";
import { listIfServed, type Tools } from "../explain/tools.ts";
import type { ObjectDocument } from "../render/documents.ts";
import { fromCluster } from "../render/inputs.ts";
import { isOfKind } from "../render/kinds.ts";
import { OWN_VERSION } from "../render/own-kinds.ts";
import { connectionKinds } from "../sources/registry.ts";

/** Objects that are in the files too are left out. Throws Error if the user may not list the claims or connections. */
export const clusterObjects =
  (tools: Tools) =>
  async (documents: readonly ObjectDocument[], namespace: string): Promise<ObjectDocument[]> => {
    const compositions = documents.filter(({ object }) => isOfKind(object, OWN_VERSION, "BindingComposition"));
    const kinds = compositions.map(({ object }) => {
      const { apiVersion, kind } = fieldsAt(object, "spec", "for");
      return { apiVersion: String(apiVersion), kind: String(kind) };
    });
    const specs = documents.map(({ object }) => stringifyJson(at(object, "spec") ?? null));
    for (const { resource, field } of connectionKinds())
      if (specs.some((spec) => spec.includes(`"${field}":`)))
        kinds.push({ apiVersion: apiVersionOf(resource), kind: resource.kind });
    if (compositions.length > 0) kinds.push({ apiVersion: "v1", kind: NAMESPACES.kind });
    const idOf = ({ apiVersion, kind, metadata }: JsonObject, isNamespaced: boolean) =>
      [apiVersion, kind, at(metadata, "namespace") ?? (isNamespaced ? namespace : ""), at(metadata, "name")].join();
    const known = new Set(documents.flatMap(({ object }) => [idOf(object, true), idOf(object, false)]));
    const unique = kinds.filter((kind, position) => kinds.findIndex((each) => isSameKind(each, kind)) === position);
    const found = await Promise.all(unique.map((kind) => objectsOf(tools, kind)));
    return found
      .flat()
      .filter((object) => !known.has(idOf(object, false)))
      .map(fromCluster);
  };

/** Without the values of Secrets and ConfigMaps, which decide on no permission. */
async function objectsOf(tools: Tools, kind: { apiVersion: string; kind: string }): Promise<JsonObject[]> {
  const read = await listIfServed(tools, kind, undefined, (object: KubeObject) => {
    const { data: _, binaryData: __, ...rest } = object as KubeObject & JsonObject;
    return rest as JsonObject;
  });
  if (read.state === "Found") return read.it;
  throw new Error(read.state === "Unreadable" ? withAdvice(read) : `there are no ${kind.kind}s`);
}
