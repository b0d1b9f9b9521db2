/**
 * An object or a list to look at comes in, and goes out as the user at hand sees it: what is there, that there is nothing,
 * or why he can't know. What he may not see is an answer like any other, so that it hides nothing else.
 */
import { apiVersionOf, type KubeObject, type ObjectRef, type Resource } from "../apimachinery/objects.ts";
import { ApiError, isNotFound } from "../kube/api-error.ts";
import { METADATA_ONLY, pathOf } from "../kube/client.ts";
import { CONTROLLER } from "../kube/identity.ts";
import { ListWatch, type Scope } from "../kube/list-watch.ts";
import type { Transport } from "../kube/transport.ts";
import type { ReadState } from "./explanation.ts";

export type Reading<T> =
  | { readonly state: "Found"; readonly it: T }
  | { readonly state: "NotFound" }
  | { readonly state: "Unreadable"; readonly message: string };

/** As the user himself: nobody is impersonated. */
const SELF = CONTROLLER;

export class Reader {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** `take` keeps of the object what is wanted: the rest of a Secret is gone when this returns. */
  async get<T>(ref: ObjectRef, take: (object: KubeObject) => T, form: Scope["form"] = "metadata"): Promise<Reading<T>> {
    const path = pathOf(ref.resource, ref.namespace, ref.name);
    const accept = form === "metadata" ? METADATA_ONLY : "application/json";
    try {
      const object = await this.#transport.request<KubeObject>({ method: "GET", path, identity: SELF, accept });
      return { state: "Found", it: take(object) };
    } catch (error) {
      if (isNotFound(error)) return { state: "NotFound" };
      return { state: "Unreadable", message: why(error, "get", ref) };
    }
  }

  /** What `take` keeps of each object, page by page; nothing of those for which it says undefined. */
  async list<T>(scope: Scope, take: (object: KubeObject) => T | undefined): Promise<Reading<T[]>> {
    const { resource } = scope;
    const kept: T[] = [];
    try {
      for await (const { items } of new ListWatch(this.#transport, SELF, scope).list(new AbortController().signal)) {
        for (const item of items) {
          // In a list, only the list says of what kind its items are.
          const taken = take({ ...item, apiVersion: apiVersionOf(resource), kind: resource.kind });
          if (taken !== undefined) kept.push(taken);
        }
      }
    } catch (error) {
      return { state: "Unreadable", message: why(error, "list", scope) };
    }
    return { state: "Found", it: kept };
  }
}

/** Throws what is no answer about this object alone: that nobody answers, or that the API server does not know the user. */
function why(error: unknown, verb: string, { resource, namespace, name }: Omit<Scope, "form">): string {
  if (!(error instanceof ApiError)) throw error;
  if (error.status === 401) throw new Error("the API server does not know who you are; log in again");
  if (error.status === 0) throw error;
  const place = namespace === undefined ? " in all namespaces" : ` in namespace ${namespace}`;
  const where = resource.namespaced ? place : "";
  const what = `${nameOf(resource)}${name === undefined ? "" : `/${name}`}${where}`;
  if (error.status === 403) return `you may not ${verb} ${what}`;
  if (error.status === 404) return `the cluster serves no ${nameOf(resource)}`;
  return `the API server did not ${verb} ${what} (${error.status} ${error.reason})`;
}

const nameOf = ({ group, plural }: Resource) => (group === "" ? plural : `${plural}.${group}`);

/** Without what is there. */
export function seenOf(reading: Reading<unknown>): ReadState {
  return reading.state === "Unreadable" ? { state: reading.state, message: reading.message } : { state: reading.state };
}

/** What is there, or `otherwise` where nothing is, or nothing can be seen. */
export const foundOr = <T>(reading: Reading<T>, otherwise: T): T =>
  reading.state === "Found" ? reading.it : otherwise;
