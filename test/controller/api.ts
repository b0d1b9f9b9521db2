/** A client of the API server for tests, without code of src, so that tests do not depend on the code that they check. */
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import type { ControlPlane } from "../control-plane/control-plane.ts";

/** An object of any kind, whose fields the test knows. */
// biome-ignore lint/suspicious/noExplicitAny: answers of the API server are checked by assertions
export type AnyObject = any;

/** Ignores that an object does not exist. */
export function unlessGone(error: Error): undefined {
  if (error instanceof RequestFailed && error.status === 404) return undefined;
  throw error;
}

/** Limits the requests at once, for example when a test creates a thousand objects. */
const CONNECTIONS = 64;

/** The API server's answer for some moments after a CustomResourceDefinition is established. */
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

/** One pool of connections for each control plane: tests create many clients, and new connections are expensive. */
const agents = new WeakMap<ControlPlane, Agent>();

export class Api {
  readonly #controlPlane: ControlPlane;
  readonly #user: string;
  readonly #as: readonly string[];
  readonly #isDryRun: boolean;
  readonly #sent: { token?: string; headers?: Record<string, string> };

  /** Sends requests as `user`. With `as`, the first name is the impersonated user, and the others are groups. */
  constructor(
    controlPlane: ControlPlane,
    user = "admin",
    as: readonly string[] = [],
    isDryRun = false,
    sent: { token?: string; headers?: Record<string, string> } = {},
  ) {
    this.#controlPlane = controlPlane;
    this.#user = user;
    this.#as = as;
    this.#isDryRun = isDryRun;
    this.#sent = sent;
  }

  /** The same API as another user, like `kubectl --as=NAME --as-group=GROUP`. */
  as(name: string, ...groups: string[]): Api {
    return new Api(this.#controlPlane, this.#user, [name, ...groups], this.#isDryRun, this.#sent);
  }

  /** The same API for dry runs, like `kubectl --dry-run=server`. */
  get dryRun(): Api {
    return new Api(this.#controlPlane, this.#user, this.#as, true, this.#sent);
  }

  /** The API for the owner of a token, who impersonates no user. */
  bearing(token: string): Api {
    return new Api(this.#controlPlane, this.#user, [], this.#isDryRun, { token });
  }

  /** The same API with further headers. */
  sending(headers: Record<string, string>): Api {
    return new Api(this.#controlPlane, this.#user, this.#as, this.#isDryRun, { ...this.#sent, headers });
  }

  get(path: string): Promise<AnyObject> {
    return this.#send("GET", path);
  }

  /** Returns undefined when the object does not exist. */
  async find(path: string): Promise<AnyObject | undefined> {
    return await this.get(path).catch(unlessGone);
  }

  /** A text is sent as it is. */
  create(path: string, body: object | string): Promise<AnyObject> {
    return this.#send("POST", path, "application/json", body);
  }

  /** Replaces the whole object. The request fails if the object has another resourceVersion, unless `object` has none. */
  replace(path: string, body: object): Promise<AnyObject> {
    return this.#send("PUT", path, "application/json", body);
  }

  delete(path: string): Promise<AnyObject> {
    return this.#send("DELETE", path);
  }

  /** Deletes an object or a collection. Succeeds also if it does not exist. */
  async remove(path: string): Promise<void> {
    await this.delete(path).catch(unlessGone);
  }

  /** JSON merge patch, with the field manager `another-user` by default. */
  merge(path: string, patch: object | string, manager = "another-user"): Promise<AnyObject> {
    return this.#send("PATCH", `${path}?fieldManager=${manager}`, "application/merge-patch+json", patch);
  }

  jsonPatch(path: string, operations: object[], manager = "another-user"): Promise<AnyObject> {
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

  /** The events of a watch, which begins with the existing objects, until the time is over or the signal aborts. */
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
    // Some JSON answers have the content type of plain text, such as /openapi/v3. Other answers are plain text, such as some 404.
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
      authorization: `Bearer ${this.#sent.token ?? this.#controlPlane.token(this.#user)}`,
      accept: "application/json",
      ...this.#sent.headers,
      ...(name && { "impersonate-user": name }),
      ...(groups.length > 0 && { "impersonate-group": groups }),
    };
  }

  get #agent(): Agent {
    let agent = agents.get(this.#controlPlane);
    if (agent === undefined) {
      // Not HTTP/2: an API server may ask its HTTP/2 clients to reconnect, which only the tested code should handle.
      const connect = { ca: this.#controlPlane.caData };
      agent = new Agent({ connect, allowH2: false, connections: CONNECTIONS });
      agents.set(this.#controlPlane, agent);
    }
    return agent;
  }
}
