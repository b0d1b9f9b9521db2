/**
 * An API server with a few objects, for unit tests. It accepts a write only if the request names the present version, and
 * supports no apply, so nothing can be forced.
 */
import jsonPatch from "fast-json-patch";
import { apiVersionOf, type KubeObject, type Resource } from "../../src/apimachinery/objects.ts";
import { ApiError } from "../../src/kube/api-error.ts";
import { Client, pathOf } from "../../src/kube/client.ts";
import { CONTROLLER } from "../../src/kube/identity.ts";
import type { Request } from "../../src/kube/transport.ts";
import { fakeTransport } from "./fakes.ts";
import { HARBORS } from "./resources.ts";

const CORE = "/api/v1/";

export class FakeApiServer {
  /** The kinds that it serves, in addition to the core group. */
  kinds: readonly Resource[] = [HARBORS];
  /** Called for each request. The request fails with the error that this returns. */
  intervene: (request: Request) => Error | undefined = () => undefined;
  /** As `<user> <method> <path>`. */
  readonly requests: string[] = [];
  readonly #objects = new Map<string, KubeObject>();
  #version = 100;

  readonly transport = fakeTransport({ request: async (request: Request) => this.#answer(request) });
  readonly client = new Client(this.transport);

  put(resource: Resource, object: { metadata: { namespace?: string | undefined; name: string } }): void {
    const { namespace, name } = object.metadata;
    this.#objects.set(pathOf(resource, namespace, name), object as KubeObject);
  }

  get(resource: Resource, name: string, namespace = "registry"): KubeObject | undefined {
    return this.#objects.get(pathOf(resource, namespace, name));
  }

  /** The writes, as `<method> <name>`. */
  get writes(): string[] {
    const requests = this.requests.map((request) => request.replace(/\?.*/, "").split(" "));
    return requests.flatMap(([, method = "", path = ""]) =>
      method === "GET" ? [] : [`${method} ${path.slice(path.lastIndexOf("/") + 1)}`],
    );
  }

  /** The users who read or wrote objects of its kinds. */
  get users(): string[] {
    const requests = this.requests.map((request) => request.split(" "));
    const ofObjects = requests.filter(([, , path = ""]) => /^\/apis\/.*\/.*\/./.test(path));
    return [...new Set(ofObjects.map(([user = ""]) => user))];
  }

  #answer(request: Request): unknown {
    const { method, identity, path } = request;
    this.requests.push(`${identity === CONTROLLER ? "controller" : identity} ${method} ${path}`);
    const refused = this.intervene(request);
    if (refused !== undefined) throw refused;
    const [address = ""] = path.split("?");
    const found = method === "GET" ? this.#discover(address) : undefined;
    if (found !== undefined) return found;
    const key = address.replace(/\/status$/, "");
    const object = this.#objects.get(key);
    const isServed = address.startsWith(CORE) || this.kinds.some((kind) => address.startsWith(groupPath(kind)));
    if (!isServed || object === undefined)
      throw new ApiError(`${method} ${path}`, 404, isServed ? "NotFound" : "Error");
    return method === "GET" ? object : this.#write(key, object, request);
  }

  #write(key: string, object: KubeObject, { method, path, contentType, body = "" }: Request): unknown {
    const sent = JSON.parse(body);
    let changed: KubeObject | undefined;
    let version: unknown;
    if (method === "DELETE") {
      version = sent.preconditions.uid === object.metadata.uid ? sent.preconditions.resourceVersion : "another's";
    } else if (method === "PUT") {
      version = sent.metadata.resourceVersion;
      changed = { ...object, status: sent.status };
    } else if (contentType === "application/merge-patch+json") {
      version = sent.metadata.resourceVersion;
      changed = { ...object, metadata: { ...object.metadata, ...sent.metadata } };
    } else if (contentType === "application/json-patch+json") {
      version = sent[0].path === "/metadata/resourceVersion" ? sent[0].value : undefined;
      try {
        changed = jsonPatch.applyPatch(structuredClone(object), sent, true).newDocument;
      } catch {
        throw new ApiError(`${method} ${path}`, 422, "Invalid");
      }
    }
    if (version === undefined) throw new Error(`${method} ${path} names no version`);
    if (version !== object.metadata.resourceVersion) throw new ApiError(`${method} ${path}`, 409, "Conflict");
    if (changed === undefined) return this.#objects.delete(key);
    const stored = { ...changed, metadata: { ...changed.metadata, resourceVersion: String(++this.#version) } };
    this.#objects.set(key, stored);
    return stored;
  }

  /** The discovery documents for its kinds. It publishes no schemas. */
  #discover(address: string): unknown {
    const groups = this.kinds.map((kind) => {
      const version = { groupVersion: apiVersionOf(kind) };
      return { name: kind.group, preferredVersion: version, versions: [version] };
    });
    if (address === "/openapi/v3") return { paths: {} };
    if (address === "/apis") return { groups };
    const group = groups.find(({ name }) => address === `/apis/${name}`);
    const kinds = this.kinds.filter((kind) => address === groupPath(kind));
    if (group !== undefined || kinds.length === 0) return group;
    const resources = kinds.flatMap(({ plural: name, kind, namespaced, hasStatus }) => [
      { name, kind, namespaced },
      ...(hasStatus ? [{ name: `${name}/status`, kind, namespaced }] : []),
    ]);
    return { resources };
  }
}

const groupPath = (kind: Resource) => `/apis/${apiVersionOf(kind)}`;
