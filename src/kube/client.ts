/** The verbs of the Kubernetes API on one object, each made as an identity. Failures are thrown as ApiError. */
import { apiVersionOf, type JsonObject, type KubeObject, type ObjectRef, type Resource } from "../model/kube-object.ts";
import type { Identity } from "./identity.ts";
import type { Transport } from "./transport.ts";

/** Answers of this form hold `metadata` alone, so that a write does not bring the whole object back. */
const METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

export interface JsonPatchOperation {
  op: "test" | "add" | "replace" | "remove";
  path: string;
  value?: unknown;
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
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  get<T = KubeObject>(identity: Identity, { resource, namespace, name }: ObjectRef): Promise<T> {
    return this.#transport.request<T>({ method: "GET", path: pathOf(resource, namespace, name), identity });
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
    const metadata = { ...(leaves["metadata"] as JsonObject | undefined), name, uid, ...(namespace && { namespace }) };
    return this.#transport.request<KubeObject>({
      method: "PATCH",
      path: `${pathOf(resource, namespace, name)}?${query}`,
      identity,
      contentType: "application/apply-patch+yaml",
      accept: METADATA_ONLY,
      body: JSON.stringify({ ...leaves, apiVersion: apiVersionOf(resource), kind: resource.kind, metadata }),
    });
  }

  jsonPatch(
    identity: Identity,
    { resource, namespace, name }: ObjectRef,
    operations: JsonPatchOperation[],
    fieldManager: string,
  ): Promise<KubeObject> {
    return this.#transport.request<KubeObject>({
      method: "PATCH",
      path: `${pathOf(resource, namespace, name)}?${new URLSearchParams({ fieldManager })}`,
      identity,
      contentType: "application/json-patch+json",
      accept: METADATA_ONLY,
      body: JSON.stringify(operations),
    });
  }

  /** JSON merge patch. Put metadata.resourceVersion or metadata.uid into it, so that it hits what was read. */
  mergePatch<T = KubeObject>(identity: Identity, ref: ObjectRef, patch: object, fieldManager: string): Promise<T> {
    const { resource, namespace, name } = ref;
    return this.#transport.request<T>({
      method: "PATCH",
      path: `${pathOf(resource, namespace, name)}?${new URLSearchParams({ fieldManager })}`,
      identity,
      contentType: "application/merge-patch+json",
      body: JSON.stringify(patch),
    });
  }

  /** Replaces the status; the object's resourceVersion guards it. */
  replaceStatus<T extends object>(identity: Identity, ref: ObjectRef, object: T, fieldManager: string): Promise<T> {
    const { resource, namespace, name } = ref;
    return this.#transport.request<T>({
      method: "PUT",
      path: `${pathOf(resource, namespace, name, "status")}?${new URLSearchParams({ fieldManager })}`,
      identity,
      body: JSON.stringify(object),
    });
  }

  create<T extends object>(identity: Identity, resource: Resource, namespace: string, object: T): Promise<T> {
    return this.#transport.request<T>({
      method: "POST",
      path: pathOf(resource, namespace),
      identity,
      body: JSON.stringify(object),
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
      body: JSON.stringify({
        apiVersion: "authorization.k8s.io/v1",
        kind: "SelfSubjectAccessReview",
        spec: { resourceAttributes: { verb, group, version, resource: plural, namespace, name } },
      }),
    });
    return review.status.allowed;
  }
}
