/**
 * The client for objects that bindings name. Before each write, it checks whether the API server would drop fields of
 * the object. So other code need not check.
 */
import { parsePointer } from "../apimachinery/json-pointer.ts";
import type { JsonObject, JsonValue, KubeObject, ObjectRef } from "../apimachinery/objects.ts";
import { Client, type JsonPatchOperation, type WriteGate } from "./client.ts";
import type { Identity } from "./identity.ts";
import type { RequestSender } from "./transport.ts";
import type { WriteVersions } from "./write-versions.ts";

type Arguments<Verb extends "apply" | "mergeFields" | "jsonPatch" | "createObject" | "delete"> = Parameters<
  Client[Verb]
>;

export class LosslessClient extends Client {
  readonly #versions: Pick<WriteVersions, "assertKeepsAll">;

  constructor(transport: RequestSender, writes: WriteGate, versions: Pick<WriteVersions, "assertKeepsAll">) {
    super(transport, writes);
    this.#versions = versions;
  }

  /** Also throws Problem, as do the other methods here. */
  override async apply(...[identity, ref, uid, leaves, options]: Arguments<"apply">): Promise<KubeObject> {
    return super.apply(identity, ref, uid, await this.#checked(identity, ref, leaves), options);
  }

  override async mergeFields(...[identity, ref, patch, manager]: Arguments<"mergeFields">): Promise<KubeObject> {
    return super.mergeFields(identity, ref, await this.#checked(identity, ref, patch), manager);
  }

  override async jsonPatch(...[identity, ref, operations, ...how]: Arguments<"jsonPatch">): Promise<KubeObject> {
    const value = await this.#versions.assertKeepsAll(identity, ref, operations.flatMap(writtenBy));
    const only: JsonPatchOperation[] =
      value === undefined ? [] : [{ op: "replace", path: "/metadata/resourceVersion", value }];
    return super.jsonPatch(identity, ref, [...only, ...operations], ...how);
  }

  /** A new object has no fields to lose, but its version must be one in which others can write it. */
  override async createObject(...[identity, ref, below, ...how]: Arguments<"createObject">): Promise<KubeObject> {
    const { name: _, ...collection } = ref;
    await this.#versions.assertKeepsAll(identity, collection, [below]);
    return super.createObject(identity, ref, below, ...how);
  }

  /** A delete is a write too, because a finalizer may keep the object. */
  override async delete(...[identity, ref, { metadata }]: Arguments<"delete">): Promise<void> {
    const resourceVersion = await this.#versions.assertKeepsAll(identity, ref);
    return super.delete(identity, ref, { metadata: { ...(resourceVersion && { resourceVersion }), ...metadata } });
  }

  /** The fields, restricted to the version that was checked. */
  async #checked(identity: Identity, ref: ObjectRef, fields: JsonObject): Promise<JsonObject> {
    const resourceVersion = await this.#versions.assertKeepsAll(identity, ref, [fields]);
    const metadata = fields["metadata"] as JsonObject | undefined;
    // If the caller names another version, the object has changed, and the write is a conflict.
    return resourceVersion === undefined ? fields : { ...fields, metadata: { resourceVersion, ...metadata } };
  }
}

/** The value that an operation writes, as an object with only that value. Positions in lists don't matter. */
function writtenBy({ op, path, value }: JsonPatchOperation): JsonObject[] {
  if (op !== "add" && op !== "replace") return [];
  const isElement = (key: string) => key === "-" || /^\d+$/.test(key);
  const around = (inner: JsonValue, key: string): JsonValue => (isElement(key) ? [inner] : { [key]: inner });
  return [parsePointer(path).reduceRight(around, value as JsonValue) as JsonObject];
}
