/** The verbs of the Kubernetes API on single objects, each as an identity. Failures are thrown as ApiError. */
import { stringifyJson } from "../apimachinery/json.ts";
import {
  apiVersionOf,
  type JsonObject,
  type KubeObject,
  type ObjectRef,
  type Resource,
} from "../apimachinery/objects.ts";
import { type AccessRules, partsOf } from "./access-rules.ts";
import type { List } from "./answer-text.ts";
import { ApiError } from "./api-error.ts";
import { CONTROLLER, type Identity } from "./identity.ts";
import type { Request, RequestSender } from "./transport.ts";

/** What a list asks for. */
interface PagesRequest extends Pick<Request, "deadlineMs"> {
  identity: Identity;
  /** The path with the parameters of a page. */
  path: (page: Record<string, string>) => string;
  accept?: string;
  /** The form that shows only the metadata of objects. A single object that is too large is shown in this form, or fails the list. */
  acceptMetadata?: string;
}

const PAGE_SIZE = 500;
const MAX_PAGE_CHARACTERS = 4 * 1024 ** 2;
/** A page of the next size should have about so many characters. */
const AIM = MAX_PAGE_CHARACTERS / 2;

/** Throws ApiError; `TooLarge` for an object that is larger than MAX_CHARACTERS. */
export async function* pages(
  transport: RequestSender,
  { path, acceptMetadata, ...request }: PagesRequest,
  signal?: AbortSignal,
): AsyncGenerator<List, void, void> {
  let next: string | undefined;
  let limit = PAGE_SIZE;
  let onlyMetadata = false;
  for (;;) {
    const page: Request = {
      method: "GET",
      ...request,
      path: path({ limit: String(limit), ...(next && { continue: next }) }),
      form: "list",
      // A single object may be larger.
      ...(limit > 1 && { maxCharacters: MAX_PAGE_CHARACTERS }),
      ...(onlyMetadata && acceptMetadata && { accept: acceptMetadata }),
    };
    let list: List;
    try {
      list = await transport.request<List>(page, signal);
    } catch (error) {
      if (!isTooLarge(error) || onlyMetadata) throw error;
      if (limit > 1) limit = Math.floor(limit / 4) || 1;
      else if (acceptMetadata === undefined) throw error;
      else onlyMetadata = true;
      continue;
    }
    yield list;
    // The object is larger than it looks.
    if (!onlyMetadata) limit = nextLimit(limit, list);
    onlyMetadata = false;
    next = list?.metadata?.continue;
    if (!next) return;
  }
}

const isTooLarge = (error: unknown): error is ApiError => error instanceof ApiError && error.reason === "TooLarge";

/** At most twice as many as before, and fewer if the page was large. */
function nextLimit(limit: number, list: List | undefined): number {
  const characters = (list?.lengths ?? []).reduce((sum, each) => sum + each, 0);
  const fitting = characters === 0 ? Number.POSITIVE_INFINITY : Math.floor((limit * AIM) / characters);
  return Math.max(1, Math.min(PAGE_SIZE, 2 * limit, fitting));
}

const OUTCOMES: Record<number, string> = {
  401: "forbidden",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  422: "invalid",
  429: "throttled",
};

/** Why a write was not accepted, as a label value. */
function outcomeOf(error: unknown): string {
  if (!(error instanceof ApiError)) return "error";
  if (error.status === 0) return error.reason === "NotLeading" ? "not_leading" : "no_answer";
  return OUTCOMES[error.status] ?? (error.status >= 500 ? "server_error" : "rejected");
}

/**
 * Answers in this form contain only `metadata`, so that a write returns little. The API server also does not log the text
 * of a refusal, which quotes values, in its audit log.
 */
export const METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/**
 * Answers in this form contain the whole object, as the only row of a table. In this form too, the audit log has no text
 * of a refusal.
 */
const WHOLE_OBJECT = "application/json;as=Table;g=meta.k8s.io;v=v1";

/** How much of the object the answer of a write contains. */
export type Answer = "whole" | "metadata";

/** The API server compares the value of a `test` byte by byte with the object as Go encodes it. */
const ESCAPED_BY_GO = /[<>&\u2028\u2029]/g;
const escapeOf = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/**
 * The answers of a server that lacks a version: one that lags behind others, or one that serves an API in its own way.
 */
const NOT_SEEN = [400, 410, 504];

const MERGE_PATCH = "application/merge-patch+json";
/** The most characters of the rules of an account. If there are more, they count as incomplete. */
const MAX_RULES_CHARACTERS = 4 * 1024 ** 2;

export interface JsonPatchOperation {
  op: "test" | "add" | "replace" | "remove";
  path: string;
  value?: unknown;
}

type ApplyOptions = { fieldManager: string; force: boolean; part?: "status"; dryRun?: Answer; answer?: Answer };
export type Selectors = { labels?: string | undefined; fields?: string };

const METHODS = { apply: "PATCH", patch: "PATCH", update: "PUT", create: "POST", delete: "DELETE" } as const;
type Verb = keyof typeof METHODS;

/** Permits and counts a client's writes. Access reviews and dry runs are not writes. */
export interface WriteGate {
  /** Whether a write may be sent now. */
  mayWrite(): boolean;
  /** The outcome of a write: `accepted`, or why not. */
  wrote(verb: Verb, outcome: string): void;
}

/** The URL of a group in a version. */
export const rootOf = ({ group, version }: Pick<Resource, "group" | "version">): string =>
  group === "" ? `/api/${version}` : `/apis/${group}/${version}`;

/** The URL of a collection, or of one object in it. */
export function pathOf(resource: Resource, namespace?: string, name?: string, subresource?: string): string {
  const { plural, namespaced } = resource;
  return [
    rootOf(resource),
    ...(namespaced && namespace !== undefined ? ["namespaces", encodeURIComponent(namespace)] : []),
    plural,
    ...(name === undefined ? [] : [encodeURIComponent(name)]),
    ...(subresource === undefined ? [] : [subresource]),
  ].join("/");
}

/** The field selector of one object. A name may contain characters that separate selectors. */
export const nameSelector = (name: string) =>
  `metadata.name=${name.replace(/[\\,=]/g, (character) => `\\${character}`)}`;

export class Client {
  readonly #transport: RequestSender;
  readonly #writes: WriteGate | undefined;

  constructor(transport: RequestSender, writes?: WriteGate) {
    this.#transport = transport;
    this.#writes = writes;
  }

  /**
   * The current object; or, with `seen`, the object at that resourceVersion or later. The API server answers the latter
   * from its cache, without etcd, at half the cost. Throws `TooDeep` for an object with too many levels. In the form `values`, managedFields
   * may lack the owned fields.
   */
  async get<T = KubeObject>(
    identity: Identity,
    ref: ObjectRef,
    seen?: string,
    form: "whole" | "values" = "whole",
  ): Promise<T> {
    const how = { isWhole: true, ...(form === "values" && { form }) };
    if (seen === undefined) return this.#transport.request<T>(requestFor("GET", identity, ref, how));
    try {
      const query = { resourceVersion: seen };
      return await this.#transport.request<T>(requestFor("GET", identity, ref, { ...how, query }));
    } catch (error) {
      if (!(error instanceof ApiError) || !NOT_SEEN.includes(error.status)) throw error;
      return this.get<T>(identity, ref, undefined, form);
    }
  }

  /**
   * The object as it was in that version of the cluster, which may be the resourceVersion of any other object; undefined if it did not
   * exist then. Needs `list` for the name. Throws ApiError 410 for a version of more than some minutes ago.
   */
  async getAt<T extends KubeObject>(
    identity: Identity,
    { resource, namespace, name }: ObjectRef,
    version: string,
  ): Promise<T | undefined> {
    const query = { fieldSelector: nameSelector(name), resourceVersion: version, resourceVersionMatch: "Exact" };
    const request = requestFor(
      "GET",
      identity,
      { resource, ...(namespace && { namespace }) },
      { isWhole: true, query },
    );
    const { items: [found] = [] } = await this.#transport.request<{ items?: T[] }>(request);
    // The items of a list of a built-in kind have no type of their own.
    return found && { ...found, apiVersion: apiVersionOf(resource), kind: resource.kind };
  }

  /** The objects of a kind in a namespace that match the selectors, page by page. */
  async *list(
    identity: Identity,
    resource: Resource,
    namespace: string,
    { labels, fields }: Selectors = {},
  ): AsyncGenerator<readonly KubeObject[], void> {
    const selected = { ...(labels && { labelSelector: labels }), ...(fields && { fieldSelector: fields }) };
    const path = (page: Record<string, string>) =>
      requestFor("GET", identity, { resource, namespace }, { query: { ...page, ...selected } }).path;
    for await (const page of pages(this.#transport, { identity, path })) yield page.items ?? [];
  }

  /**
   * Server-side apply of `leaves` to the object with this uid; the uid prevents creation. `part` is a subresource. A
   * dry run changes nothing, and returns the object as it would be, or its metadata.
   */
  async apply(
    identity: Identity,
    ref: ObjectRef,
    uid: string,
    leaves: JsonObject,
    { fieldManager, force, part, dryRun, answer = "metadata" }: ApplyOptions,
  ): Promise<KubeObject> {
    const how = {
      ...(part !== undefined && { part }),
      query: { fieldManager, force: String(force), fieldValidation: "Strict" },
      contentType: "application/apply-patch+yaml",
      ...(dryRun === "whole" && { isWhole: true }),
      body: stringifyJson(named(ref, leaves, { uid })),
    };
    return this.#writeObject("apply", identity, ref, how, dryRun ?? answer, dryRun !== undefined);
  }

  /** A dry run changes nothing, and returns the object as it would be, or its metadata. */
  async jsonPatch(
    identity: Identity,
    ref: ObjectRef,
    operations: JsonPatchOperation[],
    fieldManager: string,
    dryRun = false,
    answer: Answer = "metadata",
  ): Promise<KubeObject> {
    const body = stringifyJson(operations).replace(ESCAPED_BY_GO, escapeOf);
    const how = { query: { fieldManager }, contentType: "application/json-patch+json", body };
    return this.#writeObject("patch", identity, ref, how, answer, dryRun);
  }

  /**
   * JSON merge patch. Put metadata.resourceVersion or metadata.uid into it, so that it changes only the object that was
   * read.
   */
  mergePatch<T = KubeObject>(identity: Identity, ref: ObjectRef, patch: object, fieldManager: string): Promise<T> {
    const how = { query: { fieldManager }, contentType: MERGE_PATCH, body: stringifyJson(patch) };
    return this.#write("patch", identity, ref, how);
  }

  /** The same, but refuses fields that the kind's schema lacks, which are dropped otherwise, and returns the metadata. */
  mergeFields(identity: Identity, ref: ObjectRef, patch: JsonObject, fieldManager: string): Promise<KubeObject> {
    const query = { fieldManager, fieldValidation: "Strict" };
    const how = { query, contentType: MERGE_PATCH, accept: METADATA_ONLY, body: stringifyJson(patch) };
    return this.#write("patch", identity, ref, how);
  }

  /** Replaces the status. Fails with a conflict if the resourceVersion of `object` is outdated. */
  replaceStatus<T extends object>(identity: Identity, ref: ObjectRef, object: T, fieldManager: string): Promise<T> {
    const how = { part: "status", query: { fieldManager }, body: stringifyJson(object) };
    return this.#write("update", identity, ref, how);
  }

  /** Replaces an object. Fails with a conflict if its resourceVersion is outdated. */
  replace<T extends object>(identity: Identity, ref: ObjectRef, object: T, fieldManager?: string): Promise<T> {
    const how = { ...(fieldManager !== undefined && { query: { fieldManager } }), body: stringifyJson(object) };
    return this.#write("update", identity, ref, how);
  }

  create<T extends object>(identity: Identity, resource: Resource, namespace: string, object: T): Promise<T> {
    return this.#write("create", identity, { resource, namespace }, { body: stringifyJson(object) });
  }

  /**
   * Creates the object that `ref` names, with the fields of `below`. Never changes an existing object. A dry run
   * creates nothing; the API server checks last whether the name is taken.
   */
  async createObject(
    identity: Identity,
    ref: ObjectRef,
    below: JsonObject,
    fieldManager: string,
    dryRun = false,
    answer: Answer = "metadata",
  ): Promise<KubeObject> {
    const { name: _, ...collection } = ref;
    const how = { query: { fieldManager, fieldValidation: "Strict" }, body: stringifyJson(named(ref, below)) };
    return this.#writeObject("create", identity, collection, how, answer, dryRun);
  }

  /** Deletes the object of that uid, in the given version if any. The garbage collector deletes its dependents. */
  async delete(
    identity: Identity,
    ref: ObjectRef,
    { metadata: { uid, resourceVersion } }: { metadata: { uid: string; resourceVersion?: string } },
  ): Promise<void> {
    const options = {
      apiVersion: "v1",
      kind: "DeleteOptions",
      preconditions: { uid, resourceVersion },
      propagationPolicy: "Background",
    };
    const how = { accept: METADATA_ONLY, body: stringifyJson(options) };
    await this.#write("delete", identity, ref, how);
  }

  /** Evicts the pod of that uid. PodDisruptionBudgets that forbid it answer with 429. */
  async evict(identity: Identity, ref: ObjectRef, uid: string): Promise<void> {
    const { namespace, name } = ref;
    const eviction = {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name, ...(namespace && { namespace }) },
      deleteOptions: { preconditions: { uid } },
    };
    const how = { part: "eviction", isOnce: true, body: stringifyJson(eviction) };
    await this.#write("create", identity, ref, how);
  }

  /**
   * Whether `identity` is allowed `verb` on a kind, by a SelfSubjectAccessReview: everywhere unless a namespace or name is given.
   */
  async may(
    identity: Identity,
    verb: string,
    { group, version, plural }: Pick<Resource, "group" | "version" | "plural">,
    namespace?: string,
    name?: string,
  ): Promise<boolean> {
    const resourceAttributes = { verb, group, version, ...partsOf(plural), namespace, name };
    const of = { identity, ...ACCESS, kind: "SelfSubjectAccessReview" };
    return (await this.#review<{ allowed: boolean }>(of, { resourceAttributes })).allowed;
  }

  /** The permissions of `identity` in a namespace, by a SelfSubjectRulesReview. */
  async rules(identity: Identity, namespace: string): Promise<AccessRules> {
    try {
      const of = { identity, ...ACCESS, kind: "SelfSubjectRulesReview", maxCharacters: MAX_RULES_CHARACTERS };
      const status = await this.#review<AccessRules>(of, { namespace });
      return { incomplete: status.incomplete, resourceRules: status.resourceRules ?? [] };
    } catch (error) {
      if (isTooLarge(error)) return { incomplete: true, resourceRules: [] };
      throw error;
    }
  }

  /** The user of a bearer token, by a TokenReview; undefined if the API server does not know the token. */
  async userOf(token: string): Promise<TokenUser | undefined> {
    const of = { ...OF_OTHERS, group: "authentication.k8s.io", kind: "TokenReview" };
    const { authenticated, user } = await this.#review<{ authenticated?: boolean; user?: TokenUser }>(of, { token });
    return authenticated === true ? user : undefined;
  }

  /** Whether a user may `get` a non-resource path, such as `/metrics`, by a SubjectAccessReview. */
  async mayGetPath({ username, ...user }: TokenUser, path: string): Promise<boolean> {
    const of = { ...OF_OTHERS, ...ACCESS, kind: "SubjectAccessReview" };
    const spec = { user: username, ...user, nonResourceAttributes: { path, verb: "get" } };
    return (await this.#review<{ allowed: boolean }>(of, spec)).allowed;
  }

  async #review<S>({ group, kind, ...how }: Review, spec: object): Promise<S> {
    const path = `/apis/${group}/v1/${kind.toLowerCase()}s`;
    const body = stringifyJson({ apiVersion: `${group}/v1`, kind, spec });
    return (await this.#transport.request<{ status: S }>({ method: "POST", path, body, ...how })).status;
  }

  /** A dry run is no write. Returns the object in the answer, or its metadata. */
  async #writeObject(
    verb: Verb,
    identity: Identity,
    of: ObjectOrKind,
    how: Details,
    answer: Answer,
    isDryRun: boolean,
  ): Promise<KubeObject> {
    const isWhole = answer === "whole";
    const forms = { ...(isWhole && { includeObject: "Object" }), ...(isDryRun && { dryRun: "All" }) };
    const query = { ...how.query, ...forms };
    const details = { ...how, query, accept: isWhole ? WHOLE_OBJECT : METADATA_ONLY };
    if (!isDryRun) return objectIn(await this.#write(verb, identity, of, details));
    return objectIn(await this.#transport.request<KubeObject>(requestFor(METHODS[verb], identity, of, details)));
  }

  async #write<T>(verb: Verb, identity: Identity, of: ObjectOrKind, how: Details): Promise<T> {
    const request = requestFor(METHODS[verb], identity, of, how);
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

/** The object in an answer, which may be a table. */
function objectIn(answer: KubeObject): KubeObject {
  if (answer.apiVersion !== "meta.k8s.io/v1" || answer.kind !== "Table") return answer;
  const [row] = answer["rows"] as unknown as { object: KubeObject }[];
  return row?.object ?? answer;
}

/** The kind of a review, and how it is requested. */
interface Review extends Pick<Request, "identity" | "isOnce" | "maxCharacters"> {
  group: string;
  kind: string;
}

const ACCESS = { group: "authorization.k8s.io" };
/** The reviews of users other than the client. A 429 is thrown like any other refusal, without a retry: the user retries. */
const OF_OTHERS = { identity: CONTROLLER, isOnce: true };

/** A user as a TokenReview returns it. A SubjectAccessReview has the same fields, except that `username` is `user`. */
interface TokenUser {
  username: string;
  uid?: string;
  groups?: string[];
  extra?: Record<string, string[]>;
}

/** A request without its method, identity and object. */
interface Details extends Omit<Request, "method" | "identity" | "path"> {
  /** A subresource. */
  part?: string;
  query?: Record<string, string>;
}

/** An object, or without a name all of its kind. */
type ObjectOrKind = Omit<ObjectRef, "name"> & { name?: string };

function requestFor(
  method: Request["method"],
  identity: Identity,
  { resource, namespace, name }: ObjectOrKind,
  { part, query, ...more }: Details = {},
): Request {
  const path = pathOf(resource, namespace, name, part);
  return { method, path: query === undefined ? path : `${path}?${new URLSearchParams(query)}`, identity, ...more };
}

/** The object that `ref` names, with the fields of `below`. */
function named({ resource, namespace, name }: ObjectRef, below: JsonObject, more: JsonObject = {}): JsonObject {
  const metadata = { ...(below["metadata"] as JsonObject | undefined), name, ...more, ...(namespace && { namespace }) };
  return { ...below, apiVersion: apiVersionOf(resource), kind: resource.kind, metadata };
}
