/**
 * A transport that changes nothing: it sends each write as a server-side dry run, and drops events. All requests pass here, so no part of
 * Inlay can write around it.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import { isObject, parseJson, stringifyJson } from "../apimachinery/json.ts";
import { BoundedMap } from "../apimachinery/maps.ts";
import type { JsonObject, JsonValue, KubeObject } from "../apimachinery/objects.ts";
import { objectOf } from "./api-error.ts";
import type { Credentials } from "./credentials.ts";
import { resourceText } from "./grant-commands.ts";
import { type Request, Transport, type TransportOptions } from "./transport.ts";

interface WriteTarget {
  /** The resource, with its group and subresource, such as `deployments.apps` or `secretbindings.inlay.dev/status`. */
  readonly resource: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** The identity of the object, which is not written. */
const IDENTITY = new Set([
  "apiVersion",
  "kind",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "metadata.resourceVersion",
]);
const MAX_FIELDS = 50;

/** The object of a URL path, without its query. */
export function writeTarget(path: string): WriteTarget {
  const object = objectOf(path);
  if (object === undefined) return { resource: "" };
  const { resource, namespace, ...named } = object;
  return { resource: resourceText(resource), ...(namespace !== undefined && { namespace }), ...named };
}

/** The paths that the body of a request sets, at most 50. A list counts as one field. */
export function bodyFields({ method, body, contentType }: Pick<Request, "method" | "body" | "contentType">): string[] {
  if (body === undefined || method === "DELETE") return [];
  const content = parseJson(body) as JsonValue;
  const all =
    contentType === "application/json-patch+json"
      ? (content as { op: string; path: string }[]).flatMap(({ op, path }) => (op === "test" ? [] : [path]))
      : [...leavesOf(content as JsonObject, "")].filter((each) => !IDENTITY.has(each));
  const fields = [...new Set(all)].sort();
  return fields.length <= MAX_FIELDS
    ? fields
    : [...fields.slice(0, MAX_FIELDS), `and ${fields.length - MAX_FIELDS} more`];
}

function* leavesOf(object: JsonObject, above: string): Generator<string> {
  for (const [key, value] of Object.entries(object)) {
    const step = /^[\w-]+$/.test(key) ? key : `["${key}"]`;
    const path = above === "" ? step : step.startsWith("[") ? above + step : `${above}.${step}`;
    if (isObject(value) && Object.keys(value).length > 0) yield* leavesOf(value, path);
    else yield path;
  }
}

/** What would be written. Contains no value. */
export interface PlannedWrite extends WriteTarget {
  readonly verb: "apply" | "create" | "delete" | "patch" | "update";
  readonly identity: string;
  readonly fields: readonly string[];
}

/** Requests that store nothing: reviews of permissions and tokens, and tokens of accounts, with which Inlay logs in to Vault. */
const STORES_NOTHING =
  /^\/apis\/(?:authorization|authentication)\.k8s\.io\/|^\/api\/v1\/namespaces\/[^/]+\/serviceaccounts\/[^/]+\/token$/;
const EVENTS = /^\/(?:api\/v1|apis\/events\.k8s\.io\/v1)\/namespaces\/[^/]+\/events(?:\/|$)/;
const VERBS: Readonly<Record<Exclude<Request["method"], "GET">, PlannedWrite["verb"]>> = {
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};
/** Beyond this number, repeated writes are reported again. */
const MAX_REPORTED = 50_000;

export class DryRunTransport extends Transport {
  readonly #planned: (write: PlannedWrite) => void;
  readonly #reported = new BoundedMap<string, true>(MAX_REPORTED);
  readonly #deletions = new DryDeletions();
  /** Whether the running work has planned a write. */
  readonly #work = new AsyncLocalStorage<{ hasWritten: boolean }>();

  /** `planned` is called once for each write, however often it is repeated. */
  constructor(credentials: Credentials, planned: (write: PlannedWrite) => void, options?: TransportOptions) {
    super(credentials, options);
    this.#planned = planned;
  }

  /** Runs `work`. Returns also whether it would have written anything. */
  async during<T>(work: () => Promise<T>): Promise<{ result: T; hasWritten: boolean }> {
    const state = { hasWritten: false };
    const result = await this.#work.run(state, work);
    return { result, ...state };
  }

  override async request<T>(request: Request, signal?: AbortSignal): Promise<T> {
    const [path = "", query] = request.path.split("?");
    const isDryRun = new URLSearchParams(query).has("dryRun");
    const { method } = request;
    if (method === "GET" || STORES_NOTHING.test(path) || isDryRun) return super.request<T>(request, signal);
    if (EVENTS.test(path)) return parseJson(request.body ?? "{}") as T;
    const answer =
      (this.#deletions.replaced(request) as T | undefined) ?? (await super.request<T>(asDryRun(request), signal));
    this.#deletions.note(request);
    const running = this.#work.getStore();
    if (running !== undefined) running.hasWritten = true;
    const verb = request.contentType === "application/apply-patch+yaml" ? "apply" : VERBS[method];
    const isStatus = path.endsWith("/status");
    // The rest of the object is not written.
    const fields = bodyFields(request).filter((field) => !isStatus || field.startsWith("status"));
    const write = { verb, ...writeTarget(path), identity: request.identity, fields };
    this.#report(write, request);
    return answer;
  }

  #report(write: PlannedWrite, { method, path, body = "" }: Request): void {
    const key = createHash("sha256").update([method, path, body].join("\n")).digest("base64");
    if (this.#reported.has(key)) return;
    this.#reported.set(key, true);
    this.#planned(write);
  }
}

/** The objects that dry runs have deleted: the dry run of a creation in their place would only find them. */
export class DryDeletions {
  readonly #paths = new BoundedMap<string, true>(MAX_REPORTED);

  note({ method, path }: Request): void {
    if (method === "DELETE") this.#paths.set(withoutQuery(path), true);
  }

  /** The object that the request would create in place of a deleted one. Undefined for any other request. */
  replaced({ method, path, body }: Request): KubeObject | undefined {
    if (method !== "POST" || body === undefined || this.#paths.size === 0) return undefined;
    const object = parseJson(body) as unknown as KubeObject;
    const isDeleted = this.#paths.delete(`${withoutQuery(path)}/${object.metadata?.name}`);
    return isDeleted ? object : undefined;
  }
}

const withoutQuery = (path: string): string => path.split("?")[0] as string;

/** For a deletion, the options in the body count, and not those in the query. */
export function asDryRun(request: Request): Request {
  const path = `${request.path}${request.path.includes("?") ? "&" : "?"}dryRun=All`;
  if (request.method !== "DELETE" || request.body === undefined) return { ...request, path };
  const options = parseJson(request.body) as JsonObject;
  return { ...request, path, body: stringifyJson({ ...options, dryRun: ["All"] }) };
}
