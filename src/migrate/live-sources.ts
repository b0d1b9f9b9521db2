/** Reads what the converters need of sources that are not in the files: their metadata, their type, and whether they are immutable. */
import type { JsonObject, KubeObject } from "../apimachinery/objects.ts";
import { CONFIG_MAPS, SECRETS } from "../apimachinery/resources.ts";
import type { Reader } from "../explain/reading.ts";
import type { ObjectName } from "./known-objects.ts";

/** `unread` says why objects are missing that the user may not read. */
export async function readSources(
  reader: Pick<Reader, "get">,
  objects: readonly ObjectName[],
): Promise<{ found: JsonObject[]; unread: string[] }> {
  const found: JsonObject[] = [];
  const unread: string[] = [];
  for (const { kind, namespace, name } of objects) {
    const resource = kind === "Secret" ? SECRETS : CONFIG_MAPS;
    const reading = await reader.get({ resource, namespace, name }, (object) => withoutValues(kind, object), "whole");
    if (reading.state === "Found") found.push(reading.it);
    else if (reading.state === "Unreadable") unread.push(reading.message);
  }
  return { found, unread };
}

function withoutValues(kind: string, object: KubeObject): JsonObject {
  const { type, immutable } = object as KubeObject & JsonObject;
  const { name = "", namespace = "", labels = {}, annotations = {} } = object.metadata;
  return {
    apiVersion: "v1",
    kind,
    ...(type !== undefined && { type }),
    ...(immutable === true && { immutable }),
    metadata: { name, namespace, labels, annotations },
  };
}
