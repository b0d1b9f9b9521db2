/** What the API server was asked, by its own audit log: a place in it comes in, the requests since then go out. */
import { open, stat } from "node:fs/promises";
import type { AnyObject } from "./api.ts";

export interface AuditedRequest {
  verb: string;
  /** Group and plural, such as `goharbor.io/harborclusters`, with `/status` behind for a subresource. */
  resource: string;
  namespace: string;
  name: string;
  user: string;
  /** As whom the request was made by impersonation. */
  as: string | undefined;
  asGroups: readonly string[];
  code: number;
  /** What the user was refused for want of. A refused impersonation is logged as a request of the user himself. */
  lacks: "a right" | "impersonation" | undefined;
  /** Path and query. */
  uri: string;
  /** When it came in, as a text that sorts by time. */
  at: string;
}

/** An object as a request left it. */
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
  user: { username: string };
  impersonatedUser?: { username: string; groups?: string[] };
  objectRef?: { apiGroup?: string; resource?: string; subresource?: string; namespace?: string; name?: string };
  responseStatus?: { code?: number };
  /** Of the few kinds of which audit-policy.yaml wants it. */
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

  /** Where the log ends now. */
  async mark(): Promise<number> {
    return (await stat(this.#file)).size;
  }

  /** Every finished request since a mark. */
  async since(mark: number): Promise<AuditedRequest[]> {
    return this.#each(mark, (event) => (event.stage === "ResponseStarted" ? [] : [requestOf(event)]));
  }

  /** Every watch that the API server began to answer since a mark, in that order, and whether it still does. */
  async watchesSince(mark: number): Promise<(AuditedRequest & { open: boolean })[]> {
    const events = await this.#each(mark, (event) => [event]);
    const ended = new Set(events.filter(({ stage }) => stage !== "ResponseStarted").map(({ auditID }) => auditID));
    return events
      .filter(({ stage, verb }) => stage === "ResponseStarted" && verb === "watch")
      .map((event) => ({ ...requestOf(event), open: !ended.has(event.auditID) }));
  }

  /** Every object of a kind that was made or changed since a mark, if the log keeps that kind. */
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

  /** All that stands in it since a mark, some whole lines at a time. */
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
   * The whole lines that began after a mark: at its beginning and its end, one may be half written. It grows to more than a
   * text can be.
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

  /** The writes since a mark that the controller made, as itself or as an account. Reviews and requests for tokens write nothing. */
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

/** How the log has a request that its client broke off, such as one that was killed: it may have been carried out. */
const BROKEN_OFF = 504;

/** The object as a write left it. Where the client wanted metadata alone in answer, or waited for none, the rest is what it sent. */
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
    asGroups: impersonatedUser?.groups ?? [],
    code: responseStatus?.code ?? 0,
    lacks: lackIn(event),
    uri: requestURI,
    at: event.requestReceivedTimestamp,
  };
}

/** Who may not impersonate is refused before the authorizer is asked; what admission refuses, it allowed. */
function lackIn({ responseStatus, impersonatedUser, annotations }: AuditEvent): AuditedRequest["lacks"] {
  if (responseStatus?.code !== 403 || impersonatedUser !== undefined) return undefined;
  const decision = annotations?.["authorization.k8s.io/decision"];
  if (decision === undefined) return "impersonation";
  return decision === "forbid" ? "a right" : undefined;
}
