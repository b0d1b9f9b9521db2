/** One Lease as an API server stores it. Each update must name the current version. */
import type { ObjectRef } from "../../../src/apimachinery/objects.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import type { Client } from "../../../src/kube/client.ts";
import type { Lease } from "../../../src/manager/leader-election.ts";
import { fakeClient } from "../fakes.ts";

export class LeaseServer {
  lease: Lease | undefined;
  /** The verbs of the requests, in order. */
  readonly asked: string[] = [];
  #version = 0;

  /** Writes any record. */
  put(lease: Lease): Lease {
    this.lease = { ...lease, metadata: { ...lease.metadata, resourceVersion: String(++this.#version) } };
    return this.lease;
  }

  /** The transport of one replica. `reachable` is called before each request. */
  client(reachable: () => boolean = () => true): Pick<Client, "get" | "create" | "replace"> {
    const answer = async (verb: string, work: () => Lease): Promise<Lease> => {
      if (!reachable()) throw new ApiError(verb, 0, "DeadlineExceeded");
      this.asked.push(verb);
      return structuredClone(work());
    };
    return fakeClient({
      get: (_: unknown, { name }: ObjectRef) =>
        answer("get", () => {
          if (this.lease === undefined) throw new ApiError(`GET ${name}`, 404, "NotFound");
          return this.lease;
        }),
      create: (_as: unknown, _resource: unknown, _namespace: unknown, object: Lease) =>
        answer("create", () => {
          if (this.lease !== undefined) throw new ApiError("POST", 409, "AlreadyExists");
          return this.put(object);
        }),
      replace: (_as: unknown, _ref: unknown, object: Lease) =>
        answer("replace", () => {
          const { resourceVersion } = object.metadata;
          if (resourceVersion !== this.lease?.metadata.resourceVersion) throw new ApiError("PUT", 409, "Conflict");
          return this.put(object);
        }),
    });
  }
}
