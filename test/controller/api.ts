/**
 * The API server as a test speaks to it, by plain requests of its own: no code of src stands between a test and what it
 * checks. A method and a path come in, the parsed answer goes out.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import type { ControlPlane } from "../control-plane/control-plane.ts";

/** An object of any kind; a test knows what it asked for. */
// biome-ignore lint/suspicious/noExplicitAny: answers of the API server are checked by assertions
export type AnyObject = any;

/** For a request about what may be gone by then. */
export function unlessGone(error: Error): undefined {
  if (error instanceof RequestFailed && error.status === 404) return undefined;
  throw error;
}

/** More than that at once, as of a thousand objects that are made together, wait for each other. */
const CONNECTIONS = 64;

/** What the API server answers about a kind for some moments after its CustomResourceDefinition is established. */
const NOT_YET = /storage is \(re\)initializing/;
const ASK_AGAIN_MS = 100;

export class RequestFailed extends Error {
  override readonly name = "RequestFailed";
  readonly status: number;
  readonly body: AnyObject;
  constructor(what: string, status: number, body: AnyObject) {
    super(`${what}: ${status} ${body?.message ?? ""}`);
    this.status = status;
    this.body = body;
  }
}

/** One pool of connections for each control plane: a test has many clients, and each new connection costs both sides. */
const agents = new WeakMap<ControlPlane, Agent>();

export class Api {
  readonly #controlPlane: ControlPlane;
  readonly #user: string;
  readonly #as: readonly string[];
  readonly #isDryRun: boolean;

  /** Sends requests as `user`, who impersonates a user and groups where `as` names them in that order. */
  constructor(controlPlane: ControlPlane, user = "admin", as: readonly string[] = [], isDryRun = false) {
    this.#controlPlane = controlPlane;
    this.#user = user;
    this.#as = as;
    this.#isDryRun = isDryRun;
  }

  /** The same API for another user, such as `kubectl --as=NAME --as-group=GROUP` has it. */
  as(name: string, ...groups: string[]): Api {
    return new Api(this.#controlPlane, this.#user, [name, ...groups], this.#isDryRun);
  }

  /** The same API, where every write is checked and none is kept, such as `kubectl --dry-run=server` has it. */
  get dryRun(): Api {
    return new Api(this.#controlPlane, this.#user, this.#as, true);
  }

  get(path: string): Promise<AnyObject> {
    return this.#send("GET", path);
  }

  /** Undefined when there is no such object. */
  async find(path: string): Promise<AnyObject | undefined> {
    return await this.get(path).catch(unlessGone);
  }

  /** A text is sent as it is. */
  create(path: string, body: object | string): Promise<AnyObject> {
    return this.#send("POST", path, "application/json", body);
  }

  /** Update: the whole object, which holds the version that it replaces unless it may replace any. */
  replace(path: string, body: object): Promise<AnyObject> {
    return this.#send("PUT", path, "application/json", body);
  }

  delete(path: string): Promise<AnyObject> {
    return this.#send("DELETE", path);
  }

  /** Deletes an object, or all of a collection, unless there is none. */
  async remove(path: string): Promise<void> {
    await this.delete(path).catch(unlessGone);
  }

  /** JSON merge patch, by the manager `somebody` unless another is given. */
  merge(path: string, patch: object | string, manager = "somebody"): Promise<AnyObject> {
    return this.#send("PATCH", `${path}?fieldManager=${manager}`, "application/merge-patch+json", patch);
  }

  jsonPatch(path: string, operations: object[], manager = "somebody"): Promise<AnyObject> {
    return this.#send("PATCH", `${path}?fieldManager=${manager}`, "application/json-patch+json", operations);
  }

  /** Server-side apply. */
  apply(path: string, object: object, manager: string, force = false): Promise<AnyObject> {
    return this.#send(
      "PATCH",
      `${path}?fieldManager=${manager}&force=${force}`,
      "application/apply-patch+yaml",
      object,
    );
  }

  /** The events of a watch, beginning with the objects as they are now, until the time is over or the signal aborts. */
  async *watch(
    path: string,
    seconds: number,
    signal?: AbortSignal,
  ): AsyncGenerator<{ type: string; object: AnyObject }, void, void> {
    const { statusCode, body } = await request(
      `${this.#controlPlane.url}${path}?watch=true&timeoutSeconds=${seconds}`,
      {
        dispatcher: this.#agent,
        headers: this.#headers,
        ...(signal && { signal }),
      },
    );
    if (statusCode >= 300) throw new RequestFailed(`WATCH ${path}`, statusCode, await body.json());
    let rest = "";
    for await (const chunk of body.setEncoding("utf8")) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line);
    }
  }

  async #send(
    method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
    path: string,
    contentType?: string,
    body?: object | string,
  ): Promise<AnyObject> {
    const url = new URL(path, this.#controlPlane.url);
    if (this.#isDryRun && method !== "GET") url.searchParams.set("dryRun", "All");
    const answer = await request(url, {
      method,
      dispatcher: this.#agent,
      headers: { ...this.#headers, ...(contentType && { "content-type": contentType }) },
      ...(body && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await answer.body.text();
    // What it does not serve at all, it answers with plain text.
    // Some answers are JSON and called plain text, such as /openapi/v3; others are plain text, such as some 404.
    const parsed = /^\s*[[{]/.test(text) ? JSON.parse(text) : { message: text };
    if (answer.statusCode === 429 && NOT_YET.test(parsed.message)) {
      await sleep(ASK_AGAIN_MS);
      return this.#send(method, path, contentType, body);
    }
    if (answer.statusCode >= 300) throw new RequestFailed(`${method} ${path}`, answer.statusCode, parsed);
    return parsed;
  }

  get #headers(): Record<string, string | string[]> {
    const [name, ...groups] = this.#as;
    return {
      authorization: `Bearer ${this.#controlPlane.token(this.#user)}`,
      accept: "application/json",
      ...(name && { "impersonate-user": name }),
      ...(groups.length > 0 && { "impersonate-group": groups }),
    };
  }

  get #agent(): Agent {
    let agent = agents.get(this.#controlPlane);
    if (agent === undefined) {
      // Not HTTP/2: an API server may be told to send its clients away, which is for those to bear that are tested.
      const connect = { ca: this.#controlPlane.caData };
      agent = new Agent({ connect, allowH2: false, connections: CONNECTIONS });
      agents.set(this.#controlPlane, agent);
    }
    return agent;
  }
}
