/** Applies and deletes manifests through the API, and waits until that is done. */
import assert from "node:assert/strict";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import type { AnyObject, Api } from "./api.ts";
import { eventually } from "./eventually.ts";

const MANAGER = "kubectl";

interface Resource {
  plural: string;
  namespaced: boolean;
}

/** The objects' paths by apiVersion and kind. */
const resources = new Map<string, Resource>();

/** The objects of a YAML text. */
export const objectsOf = (yaml: string): AnyObject[] =>
  parseAllDocuments(yaml)
    .map((document) => document.toJS())
    .filter((object) => object !== null);

/** The objects in a file, or in the YAML files of a folder, in the order of the file names. */
export async function objectsIn(path: string): Promise<AnyObject[]> {
  if (!(await stat(path)).isDirectory()) return objectsOf(await readFile(path, "utf8"));
  const names = (await readdir(path)).filter((name) => name.endsWith(".yaml")).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(path, name), "utf8")));
  return texts.flatMap(objectsOf);
}

/** Applies objects one after the other by force, and waits until the API server serves the kinds among them. */
export async function applyObjects(api: Api, objects: readonly AnyObject[], manager = MANAGER): Promise<void> {
  for (const object of objects) await api.apply(await pathOf(api, object), object, manager, true);
  for (const crd of objects.filter(({ kind }) => kind === "CustomResourceDefinition")) {
    const path = await pathOf(api, crd);
    await eventually(async () => {
      const { conditions = [] } = (await api.get(path)).status ?? {};
      const established = conditions.find(({ type }: AnyObject) => type === "Established");
      assert.equal(established?.status, "True", path);
    });
  }
}

export const applyFile = async (api: Api, path: string): Promise<void> => applyObjects(api, await objectsIn(path));

/** Deletes the objects that exist, and waits until they are gone. */
export async function deleteObjects(api: Api, objects: readonly AnyObject[]): Promise<void> {
  const paths = await Promise.all(objects.map((object) => pathOf(api, object)));
  for (const path of paths) await api.remove(path);
  for (const path of paths) await eventually(async () => assert.equal(await api.find(path), undefined));
}

export const deleteFile = async (api: Api, path: string): Promise<void> => deleteObjects(api, await objectsIn(path));

/** The path of an object. */
export async function pathOf(api: Api, { apiVersion, kind, metadata }: AnyObject): Promise<string> {
  const root = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
  const { plural, namespaced } = await resourceOf(api, root, kind);
  assert.ok(!namespaced || metadata.namespace, `${kind} ${metadata.name} names no namespace`);
  const namespace = namespaced ? `/namespaces/${metadata.namespace}` : "";
  return `${root}${namespace}/${plural}/${metadata.name}`;
}

async function resourceOf(api: Api, root: string, kind: string): Promise<Resource> {
  const key = `${root} ${kind}`;
  let resource = resources.get(key);
  if (resource === undefined) {
    const served: AnyObject[] = (await api.get(root)).resources;
    const found = served.find((each) => each.kind === kind && !each.name.includes("/"));
    assert.ok(found, `${root} serves no ${kind}`);
    resource = { plural: found.name, namespaced: found.namespaced };
    resources.set(key, resource);
  }
  return resource;
}
