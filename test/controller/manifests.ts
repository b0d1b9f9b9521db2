/** Manifests that are shipped, or that others ship: a file comes in, its objects go into the cluster. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { parseAllDocuments } from "yaml";
import type { AnyObject, Api } from "./api.ts";
import { eventually } from "./eventually.ts";

export async function objectsIn(file: string): Promise<AnyObject[]> {
  return parseAllDocuments(await readFile(file, "utf8")).map((document) => document.toJS());
}

/** Where an object is, of a kind whose plural is its name and an s. */
export function pathOf({ apiVersion, kind, metadata: { namespace, name } }: AnyObject): string {
  const root = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
  const where = namespace === undefined ? "" : `/namespaces/${namespace}`;
  return `${root}${where}/${kind.toLowerCase()}s/${name}`;
}

/** Applies all of a file, and waits until the kinds in it are served. */
export async function applyFile(api: Api, file: string): Promise<void> {
  const objects = await objectsIn(file);
  for (const object of objects) await api.apply(pathOf(object), object, "kubectl", true);
  for (const crd of objects.filter(({ kind }) => kind === "CustomResourceDefinition"))
    await eventually(async () => {
      const { conditions = [] } = (await api.get(pathOf(crd))).status ?? {};
      const established = conditions.find(({ type }: AnyObject) => type === "Established");
      assert.equal(established?.status, "True");
    });
}

/** Deletes all of a file that is there. */
export async function deleteFile(api: Api, file: string): Promise<void> {
  for (const object of await objectsIn(file)) await deleteAny(api, pathOf(object));
}

/** Deletes what may be gone already. */
export async function deleteAny(api: Api, path: string): Promise<void> {
  if (await api.find(path)) await api.delete(path);
}
