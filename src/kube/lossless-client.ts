/**
 * The client for what bindings name: before each write to an object, of whatever kind, it looks whether the API server would drop
 * fields of it. So no part of the code that writes has to.
 */
import { parsePointer } from "../apimachinery/json-pointer.ts";
import type { JsonObject, JsonValue, KubeObject } from "../apimachinery/objects.ts";
import { Client, type JsonPatchOperation, type WriteGate } from "./client.ts";
import type { Transport } from "./transport.ts";
import type { WriteVersions } from "./write-versions.ts";

type Arguments<Verb extends "apply" | "jsonPatch" | "make" | "delete"> = Parameters<Client[Verb]>;

export class LosslessClient extends Client {
  readonly #versions: Pick<WriteVersions, "assertKeepsAll">;

  constructor(
    transport: Pick<Transport, "request">,
    writes: WriteGate,
    versions: Pick<WriteVersions, "assertKeepsAll">,
  ) {
    super(transport, writes);
    this.#versions = versions;
  }

  /** Also throws Problem, as do the others here. */
  override async apply(...[identity, ref, uid, leaves, options]: Arguments<"apply">): Promise<KubeObject> {
    const resourceVersion = await this.#versions.assertKeepsAll(identity, ref, [leaves]);
    const metadata = leaves["metadata"] as JsonObject | undefined;
    // A version that the caller names is another one only if the object has changed since, and then it is a conflict.
    const only = resourceVersion === undefined ? leaves : { ...leaves, metadata: { resourceVersion, ...metadata } };
    return super.apply(identity, ref, uid, only, options);
  }

  override async jsonPatch(...[identity, ref, operations, ...how]: Arguments<"jsonPatch">): Promise<KubeObject> {
    const value = await this.#versions.assertKeepsAll(identity, ref, operations.flatMap(writtenBy));
    const only: JsonPatchOperation[] =
      value === undefined ? [] : [{ op: "replace", path: "/metadata/resourceVersion", value }];
    return super.jsonPatch(identity, ref, [...only, ...operations], ...how);
  }

  /** An object that is made has nothing to lose, but its version has to be one that others can write it in. */
  override async make(...[identity, ref, below, ...how]: Arguments<"make">): Promise<KubeObject> {
    const { name: _, ...collection } = ref;
    await this.#versions.assertKeepsAll(identity, collection, [below]);
    return super.make(identity, ref, below, ...how);
  }

  /** A finalizer holds an object that is deleted, and then this is a write. */
  override async delete(...[identity, ref, { metadata }]: Arguments<"delete">): Promise<void> {
    const resourceVersion = await this.#versions.assertKeepsAll(identity, ref);
    return super.delete(identity, ref, { metadata: { ...(resourceVersion && { resourceVersion }), ...metadata } });
  }
}

/** What an operation writes, as an object with that alone. It counts in which list an element is, and not where. */
function writtenBy({ op, path, value }: JsonPatchOperation): JsonObject[] {
  if (op !== "add" && op !== "replace") return [];
  const isElement = (key: string) => key === "-" || /^\d+$/.test(key);
  const around = (inner: JsonValue, key: string): JsonValue => (isElement(key) ? [inner] : { [key]: inner });
  return [parsePointer(path).reduceRight(around, value as JsonValue) as JsonObject];
}
