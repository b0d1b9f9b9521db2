/** The verbs of the Kubernetes API on one object, each made as an identity. Failures are thrown as ApiError. */
import { stringifyJson } from "../apimachinery/json.ts";
import {
  apiVersionOf,
  type JsonObject,
  type KubeObject,
  type ObjectRef,
  type Resource,
} from "../apimachinery/objects.ts";
import { ApiError } from "./api-error.ts";
import type { Identity } from "./identity.ts";
import type { Request, Transport } from "./transport.ts";

/** Answers of this form hold `metadata` alone, so that a write does not bring the whole object back. */
export const METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/** The API server compares the value of a `test` with the object byte by byte, as Go's JSON spells it. */
const ESCAPED_BY_GO = /[<>&\u2028\u2029]/g;
const escapeOf = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** How a server answers that does not know a version: one that lags behind others, or that serves an API in its own way. */
const NOT_SEEN = [400, 410, 504];

const PAGE_SIZE = "500";

interface List {
  items?: KubeObject[];
  metadata?: { continue?: string };
}

export interface JsonPatchOperation {
  op: "test" | "add" | "replace" | "remove";
  path: string;
  value?: unknown;
}

/** What stands before a client's writes, and who counts them. Access reviews and dry runs are none. */
export interface Writes {
  /** Whether a write may be sent at this moment. */
  mayWrite(): boolean;
  /** How a write ended: `accepted`, or why not. */
  wrote(verb: "apply" | "patch" | "update" | "create" | "delete", outcome: string): void;
}

/** The URL of a collection, or of one object in it. */
export function pathOf(resource: Resource, namespace?: string, name?: string, subresource?: string): string {
  const { group, version, plural, namespaced } = resource;
  return [
    group === "" ? `/api/${version}` : `/apis/${group}/${version}`,
    ...(namespaced && namespace !== undefined ? ["namespaces", encodeURIComponent(namespace)] : []),
    plural,
    ...(name === undefined ? [] : [encodeURIComponent(name)]),
    ...(subresource === undefined ? [] : [subresource]),
  ].join("/");
}

export class Client {
  readonly #transport: Transport;
  readonly #writes: Writes | undefined;

  constructor(transport: Transport, writes?: Writes) {
    this.#transport = transport;
    this.#writes = writes;
  }

  /**
   * The object as it is; or as it was at `seen`, a version of it that a watch brought, or later. The API server answers
   * that from its memory, without asking etcd, at half the cost.
   */
  async get<T = KubeObject>(identity: Identity, ref: ObjectRef, seen?: string): Promise<T> {
    const { resource, namespace, name } = ref;
    const path = pathOf(resource, namespace, name);
    if (seen === undefined) return this.#transport.request<T>({ method: "GET", path, identity });
    const query = new URLSearchParams({ resourceVersion: seen });
    try {
      return await this.#transport.request<T>({ method: "GET", path: `${path}?${query}`, identity });
    } catch (error) {
      if (!(error instanceof ApiError) || !NOT_SEEN.includes(error.status)) throw error;
      return this.get<T>(identity, ref);
    }
  }

  /** The objects of a kind in a namespace, those with such labels, page by page. */
  async *list(
    identity: Identity,
    resource: Resource,
    namespace: string,
    labels = "",
  ): AsyncGenerator<readonly KubeObject[], void> {
    let next: string | undefined;
    do {
      const query = new URLSearchParams({ limit: PAGE_SIZE });
      if (labels !== "") query.set("labelSelector", labels);
      if (next) query.set("continue", next);
      const path = `${pathOf(resource, namespace)}?${query}`;
      const page = await this.#transport.request<List>({ method: "GET", path, identity });
      yield page.items ?? [];
      next = page.metadata?.continue;
    } while (next);
  }

  /** Server-side apply. `leaves` are merged under apiVersion, kind, name and the uid that keeps it from creating. */
  apply(
    identity: Identity,
    ref: ObjectRef,
    uid: string,
    leaves: JsonObject,
    options: { fieldManager: string; force: boolean },
  ): Promise<KubeObject> {
    const { resource, namespace, name } = ref;
    const query = new URLSearchParams({
      fieldManager: options.fieldManager,
      force: String(options.force),
      fieldValidation: "Strict",
    });
    return this.#write<KubeObject>("apply", {
      method: "PATCH",
      path: `${pathOf(resource, namespace, name)}?${query}`,
      identity,
      contentType: "application/apply-patch+yaml",
      accept: METADATA_ONLY,
      body: stringifyJson(named(ref, leaves, { uid })),
    });
  }

  jsonPatch(
    identity: Identity,
    { resource, namespace, name }: ObjectRef,
    operations: JsonPatchOperation[],
    fieldManager: string,
  ): Promise<KubeObject> {
    return this.#write<KubeObject>("patch", {
      method: "PATCH",
      path: `${pathOf(resource, namespace, name)}?${new URLSearchParams({ fieldManager })}`,
      identity,
      contentType: "application/json-patch+json",
      accept: METADATA_ONLY,
      body: stringifyJson(operations).replace(ESCAPED_BY_GO, escapeOf),
    });
  }

  /** JSON merge patch. Put metadata.resourceVersion or metadata.uid into it, so that it hits what was read. */
  mergePatch<T = KubeObject>(identity: Identity, ref: ObjectRef, patch: object, fieldManager: string): Promise<T> {
    const { resource, namespace, name } = ref;
    return this.#write<T>("patch", {
      method: "PATCH",
      path: `${pathOf(resource, namespace, name)}?${new URLSearchParams({ fieldManager })}`,
      identity,
      contentType: "application/merge-patch+json",
      body: stringifyJson(patch),
    });
  }

  /** Replaces the status; the object's resourceVersion guards it. */
  replaceStatus<T extends object>(identity: Identity, ref: ObjectRef, object: T, fieldManager: string): Promise<T> {
    const { resource, namespace, name } = ref;
    return this.#write<T>("update", {
      method: "PUT",
      path: `${pathOf(resource, namespace, name, "status")}?${new URLSearchParams({ fieldManager })}`,
      identity,
      body: stringifyJson(object),
    });
  }

  /** Replaces an object; its resourceVersion guards it. */
  replace<T extends object>(
    identity: Identity,
    { resource, namespace, name }: ObjectRef,
    object: T,
    fieldManager?: string,
  ): Promise<T> {
    const query = fieldManager === undefined ? "" : `?${new URLSearchParams({ fieldManager })}`;
    return this.#write<T>("update", {
      method: "PUT",
      path: `${pathOf(resource, namespace, name)}${query}`,
      identity,
      body: stringifyJson(object),
    });
  }

  create<T extends object>(identity: Identity, resource: Resource, namespace: string, object: T): Promise<T> {
    return this.#write<T>("create", {
      method: "POST",
      path: pathOf(resource, namespace),
      identity,
      body: stringifyJson(object),
    });
  }

  /**
   * Makes the object that `ref` names, of what is below its apiVersion, kind and name. Never touches one that is there. By a
   * dry run nothing is made; the API server looks last at whether the name is taken.
   */
  make(
    identity: Identity,
    ref: ObjectRef,
    below: JsonObject,
    fieldManager: string,
    dryRun = false,
  ): Promise<KubeObject> {
    const { resource, namespace } = ref;
    const query = new URLSearchParams({ fieldManager, fieldValidation: "Strict", ...(dryRun && { dryRun: "All" }) });
    const path = `${pathOf(resource, namespace)}?${query}`;
    const body = stringifyJson(named(ref, below));
    const request: Request = { method: "POST", path, identity, accept: METADATA_ONLY, body };
    return dryRun ? this.#transport.request(request) : this.#write("create", request);
  }

  /** Deletes an object, and what the garbage collector finds to be its own after that: the version that is given, or any. */
  async delete(
    identity: Identity,
    { resource, namespace, name }: ObjectRef,
    { metadata: { uid, resourceVersion } }: { metadata: { uid: string; resourceVersion?: string } },
  ): Promise<void> {
    await this.#write("delete", {
      method: "DELETE",
      path: pathOf(resource, namespace, name),
      identity,
      accept: METADATA_ONLY,
      body: stringifyJson({
        apiVersion: "v1",
        kind: "DeleteOptions",
        preconditions: { uid, resourceVersion },
        propagationPolicy: "Background",
      }),
    });
  }

  /** Has a pod deleted, if PodDisruptionBudgets let it go: that very pod. They answer with 429 where they don't. */
  async evict(identity: Identity, { resource, namespace, name }: ObjectRef, uid: string): Promise<void> {
    await this.#write("create", {
      method: "POST",
      path: pathOf(resource, namespace, name, "eviction"),
      identity,
      isOnce: true,
      body: stringifyJson({
        apiVersion: "policy/v1",
        kind: "Eviction",
        metadata: { name, ...(namespace && { namespace }) },
        deleteOptions: { preconditions: { uid } },
      }),
    });
  }

  /**
   * Whether `identity` may do `verb` on a kind, by a SelfSubjectAccessReview: in every namespace unless one is given,
   * on every name unless one is given.
   */
  async may(
    identity: Identity,
    verb: string,
    { group, version, plural }: Pick<Resource, "group" | "version" | "plural">,
    namespace?: string,
    name?: string,
  ): Promise<boolean> {
    const review = await this.#transport.request<{ status: { allowed: boolean } }>({
      method: "POST",
      path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
      identity,
      body: stringifyJson({
        apiVersion: "authorization.k8s.io/v1",
        kind: "SelfSubjectAccessReview",
        spec: { resourceAttributes: { verb, group, version, resource: plural, namespace, name } },
      }),
    });
    return review.status.allowed;
  }

  async #write<T>(verb: Parameters<Writes["wrote"]>[0], request: Request): Promise<T> {
    const writes = this.#writes;
    if (writes === undefined) return await this.#transport.request<T>(request);
    try {
      const answer = await this.#transport.request<T>({ ...request, mayBeSent: () => writes.mayWrite() });
      writes.wrote(verb, "accepted");
      return answer;
    } catch (error) {
      writes.wrote(verb, outcomeOf(error));
      throw error;
    }
  }
}

/** The object that `ref` names, with what is below apiVersion, kind and name. */
function named({ resource, namespace, name }: ObjectRef, below: JsonObject, more: JsonObject = {}): JsonObject {
  const metadata = { ...(below["metadata"] as JsonObject | undefined), name, ...more, ...(namespace && { namespace }) };
  return { ...below, apiVersion: apiVersionOf(resource), kind: resource.kind, metadata };
}

const OUTCOMES: Record<number, string> = {
  401: "forbidden",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  422: "invalid",
  429: "throttled",
};

/** Why a write was not accepted, in one of few words. */
function outcomeOf(error: unknown): string {
  if (!(error instanceof ApiError)) return "error";
  if (error.status === 0) return error.reason === "NotLeading" ? "not_leading" : "no_answer";
  return OUTCOMES[error.status] ?? (error.status >= 500 ? "server_error" : "rejected");
}
