/** The requests to the API server, read from its audit log. */
import { open, stat } from "node:fs/promises";
import type { AnyObject } from "./api.ts";

export interface AuditedRequest {
  verb: string;
  /** Group and plural, such as `goharbor.io/harborclusters`, followed by `/status` for a subresource. */
  resource: string;
  namespace: string;
  name: string;
  user: string;
  /** The impersonated user. */
  as: string | undefined;
  asGroups: readonly string[];
  /** The binding for which Inlay sent it: namespace/name/uid. */
  mark?: string | undefined;
  /** The ID of the token of an account, which each start of a controller has for itself. */
  credential?: string | undefined;
  code: number;
  /** What the user lacked when a request was denied. The log has a denied impersonation as a request of the original user. */
  lacks: "a right" | "impersonation" | undefined;
  /** Path and query. */
  uri: string;
  /** The time of arrival, as a text that sorts by time. */
  at: string;
}

/** An object as it was after a request. */
export interface Written {
  at: string;
  object: AnyObject;
}

interface AuditEvent {
  auditID: string;
  stage: string;
  verb: string;
  requestURI: string;
  requestReceivedTimestamp: string;
  user: { username: string; extra?: Record<string, string[]> };
  impersonatedUser?: { username: string; groups?: string[]; extra?: Record<string, string[]> };
  objectRef?: { apiGroup?: string; resource?: string; subresource?: string; namespace?: string; name?: string };
  responseStatus?: { code?: number };
  /** Present for the few kinds that audit-policy.yaml lists. */
  requestObject?: AnyObject;
  responseObject?: AnyObject;
  annotations?: Record<string, string>;
}

const PIECE_BYTES = 32 * 1024 * 1024;

export class AuditLog {
  readonly #file: string;
  constructor(file: string) {
    this.#file = file;
  }

  /** The current end of the log. */
  async mark(): Promise<number> {
    return (await stat(this.#file)).size;
  }

  /** Every finished request since a mark. */
  async since(mark: number): Promise<AuditedRequest[]> {
    return this.#each(mark, (event) => (event.stage === "ResponseStarted" ? [] : [requestOf(event)]));
  }

  /** Every watch that began after a mark, in order, and whether it is still open. */
  async watchesSince(mark: number): Promise<(AuditedRequest & { open: boolean })[]> {
    const events = await this.#each(mark, (event) => [event]);
    const ended = new Set(events.filter(({ stage }) => stage !== "ResponseStarted").map(({ auditID }) => auditID));
    return events
      .filter(({ stage, verb }) => stage === "ResponseStarted" && verb === "watch")
      .map((event) => ({ ...requestOf(event), open: !ended.has(event.auditID) }));
  }

  /** Every state of objects of a kind since a mark, if the log contains that kind. */
  async written(kind: string, mark = 0): Promise<Written[]> {
    const hasObject = (line: string) => line.includes('"responseObject":') || line.includes('"requestObject":');
    return this.#each(
      mark,
      (event) => {
        const object = storedIn(event);
        const isKept = object?.kind === kind && !event.requestURI.includes("dryRun=");
        return isKept ? [{ at: event.requestReceivedTimestamp, object }] : [];
      },
      hasObject,
    );
  }

  /** The whole log since a mark, in pieces of whole lines. */
  texts(mark = 0): AsyncGenerator<string, void, void> {
    return this.#pieces(mark);
  }

  async #each<T>(mark: number, of: (event: AuditEvent) => T[], isAsked = (_: string) => true): Promise<T[]> {
    const found: T[] = [];
    for await (const text of this.#pieces(mark)) {
      for (const line of text.split("\n")) if (line !== "" && isAsked(line)) found.push(...of(JSON.parse(line)));
    }
    return found;
  }

  /**
   * The whole lines that began after a mark, without incomplete lines at the beginning and the end. It yields pieces, because the
   * log can exceed the maximum length of a string.
   */
  async *#pieces(mark: number): AsyncGenerator<string, void, void> {
    const file = await open(this.#file);
    try {
      const end = (await file.stat()).size;
      let rest = Buffer.alloc(0);
      let isWhole = mark === 0;
      for (let at = Math.max(0, mark - 1); at < end; ) {
        const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(PIECE_BYTES, end - at)), 0, null, at);
        if (bytesRead === 0) break;
        at += bytesRead;
        rest = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
        const from = isWhole ? 0 : rest.indexOf("\n") + 1;
        const to = rest.lastIndexOf("\n") + 1;
        if (to === 0) continue;
        isWhole = true;
        yield rest.toString("utf8", from, to);
        rest = rest.subarray(to);
      }
    } finally {
      await file.close();
    }
  }

  /**
   * The controller's writes since a mark, as itself or as an account, without reviews and token requests, which change nothing.
   */
  async controllerWritesSince(mark: number): Promise<AuditedRequest[]> {
    const writes = ["create", "update", "patch", "delete"];
    return (await this.since(mark)).filter(
      ({ user, verb, resource }) =>
        user === "system:serviceaccount:inlay-system:inlay-controller" &&
        writes.includes(verb) &&
        !resource.startsWith("authorization.k8s.io/") &&
        resource !== "serviceaccounts/token",
    );
  }
}

/**
 * The log has this code for a request that its client aborted, for example because it was killed. The request may have taken
 * effect.
 */
const BROKEN_OFF = 504;

/** The object after a write. If the client asked for metadata only, or did not wait, the rest is the object that it sent. */
function storedIn({ verb, requestObject, responseObject, responseStatus }: AuditEvent): AnyObject | undefined {
  if (responseStatus?.code === BROKEN_OFF && verb !== "patch") return requestObject;
  if (responseObject?.kind !== "PartialObjectMetadata" || !["create", "update"].includes(verb)) return responseObject;
  return { ...requestObject, metadata: responseObject.metadata };
}

function requestOf(event: AuditEvent): AuditedRequest {
  const { verb, user, impersonatedUser, objectRef = {}, responseStatus, requestURI } = event;
  return {
    verb,
    resource: [objectRef.apiGroup, objectRef.resource, objectRef.subresource].filter(Boolean).join("/"),
    namespace: objectRef.namespace ?? "",
    name: objectRef.name ?? "",
    user: user.username,
    as: impersonatedUser?.username,
    mark: impersonatedUser?.extra?.["inlay.dev/binding"]?.[0],
    asGroups: impersonatedUser?.groups ?? [],
    credential: user.extra?.["authentication.kubernetes.io/credential-id"]?.[0],
    code: responseStatus?.code ?? 0,
    lacks: lackIn(event),
    uri: requestURI,
    at: event.requestReceivedTimestamp,
  };
}

/** The API server denies an impersonation before authorization. A request that admission denies was authorized. */
function lackIn({ responseStatus, impersonatedUser, annotations }: AuditEvent): AuditedRequest["lacks"] {
  if (responseStatus?.code !== 403 || impersonatedUser !== undefined) return undefined;
  const decision = annotations?.["authorization.k8s.io/decision"];
  if (decision === undefined) return "impersonation";
  return decision === "forbid" ? "a right" : undefined;
}
