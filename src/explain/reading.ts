/**
 * Reads an object or a list with the permissions of the user: the content, that there is none, or the reason why it can't be read. A
 * missing permission is a normal result, so that the other results are still shown.
 */
import { apiVersionOf, type KubeObject, type ObjectRef, type Resource } from "../apimachinery/objects.ts";
import { lastingFailure } from "../kube/access-error.ts";
import { ApiError, isNotFound } from "../kube/api-error.ts";
import { METADATA_ONLY, pathOf } from "../kube/client.ts";
import { CONTROLLER, type Identity } from "../kube/identity.ts";
import { ListWatch, type Scope, type WatchTransport } from "../kube/list-watch.ts";
import type { Denial } from "../kube/server-text.ts";
import type { ReadState } from "./explanation.ts";

export type Reading<T> =
  | { readonly state: "Found"; readonly it: T }
  | { readonly state: "NotFound" }
  | ({ readonly state: "Unreadable" } & WhyNot);

/** Why a request of the user failed. */
interface WhyNot {
  readonly message: string;
  /** What to do, if a command can't continue. */
  readonly fix?: string;
}

/** The user's own identity, without impersonation. */
export const SELF = CONTROLLER;

/** The objects of a list, page by page. */
export async function* objectsIn(
  transport: WatchTransport,
  identity: Identity,
  scope: Scope,
): AsyncGenerator<KubeObject, void> {
  // The items of a list have no kind; only the list has it.
  const type = { apiVersion: apiVersionOf(scope.resource), kind: scope.resource.kind };
  for await (const { items } of new ListWatch(transport, identity, scope).list(new AbortController().signal))
    for (const item of items) yield { ...item, ...type };
}

export class Reader {
  readonly #transport: WatchTransport;

  constructor(transport: WatchTransport) {
    this.#transport = transport;
  }

  /** `take` keeps the wanted part of the object. The rest, such as the data of a Secret, is dropped before this returns. */
  async get<T>(ref: ObjectRef, take: (object: KubeObject) => T, form: Scope["form"] = "metadata"): Promise<Reading<T>> {
    const path = pathOf(ref.resource, ref.namespace, ref.name);
    const accept = form === "metadata" ? METADATA_ONLY : "application/json";
    try {
      const object = await this.#transport.request<KubeObject>({ method: "GET", path, identity: SELF, accept });
      return { state: "Found", it: take(object) };
    } catch (error) {
      if (isNotFound(error)) return { state: "NotFound" };
      return { state: "Unreadable", ...whyNot(error, "get", ref) };
    }
  }

  /** Returns what `take` keeps of each object, page by page. Objects for which it returns undefined are skipped. */
  async list<T>(scope: Scope, take: (object: KubeObject) => T | undefined): Promise<Reading<T[]>> {
    const kept: T[] = [];
    try {
      for await (const object of objectsIn(this.#transport, SELF, scope)) {
        const taken = take(object);
        if (taken !== undefined) kept.push(taken);
      }
    } catch (error) {
      return { state: "Unreadable", ...whyNot(error, "list", scope) };
    }
    return { state: "Found", it: kept };
  }
}

/**
 * Why the user's request failed. Throws errors that do not concern this object alone: the API server can't be reached, or does not know
 * the user.
 */
export function whyNot(error: unknown, verb: string, { resource, namespace, name }: Omit<Scope, "form">): WhyNot {
  if (!(error instanceof ApiError)) throw error;
  if (error.status === 0 || error.status === 401) throw error;
  if (error.failure !== undefined)
    return {
      message: lastingFailure(error.failure, { resource, namespace, ...(name !== undefined && { name }) }, verb)
        .message,
    };
  const place = namespace === undefined ? " in all namespaces" : ` in namespace ${namespace}`;
  const where = resource.namespaced ? place : "";
  const what = `${nameOf(resource)}${name === undefined ? "" : `/${name}`}${where}`;
  if (error.denial !== undefined) return { message: `${nameOfDenial(error.denial)} does not let you ${verb} ${what}` };
  if (error.status === 403) return { message: `you may not ${verb} ${what}`, fix: "ask for this permission" };
  if (error.status === 404) return { message: `the cluster serves no ${nameOf(resource)}` };
  return { message: `the API server did not ${verb} ${what} (${error.status} ${error.reason})` };
}

/** The message for a command that can't continue without what it could not read or write. */
export const withAdvice = ({ message, fix }: WhyNot): string => (fix === undefined ? message : `${message}; ${fix}`);

const nameOfDenial = (denial: Denial) =>
  "webhook" in denial ? `the webhook ${denial.webhook}` : `the ${denial.policyKind} ${denial.policy}`;

const nameOf = ({ group, plural }: Resource) => (group === "" ? plural : `${plural}.${group}`);

/** The object that a user names. Throws Error if there is none, or the user may not read it. */
export function foundOrThrow<T>(reading: Reading<T>, { resource, namespace, name }: ObjectRef): T {
  if (reading.state === "Found") return reading.it;
  if (reading.state === "Unreadable") throw new Error(withAdvice(reading));
  const { kind, plural, namespaced } = resource;
  const [where, also, all] = namespaced ? [`${namespace}/`, " or --namespace", " -A"] : ["", "", ""];
  throw new Error(
    `there is no ${kind} ${where}${name}; correct the name${also}, or list all with: kubectl get ${plural}${all}`,
  );
}

/** The state without the content. */
export function seenOf(reading: Reading<unknown>): ReadState {
  return reading.state === "Unreadable" ? { state: reading.state, message: reading.message } : { state: reading.state };
}

/** The content, or `otherwise` if there is none or it can't be read. */
export const foundOr = <T>(reading: Reading<T>, otherwise: T): T =>
  reading.state === "Found" ? reading.it : otherwise;
