/**
 * A proxy between a controller and its API server, which can answer in place of the API server. It shows the API server's
 * own certificate. It forwards every request except those that it refuses or holds on command. It can add events to open
 * watches.
 */
import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect,
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import type { Door } from "./proxied-controller.ts";

export interface Identity {
  /** The certificate of the API server and of its authority, as PEM. */
  cert: string;
  key: string;
}

/** Selects requests by their path with the query, and by their method. */
type Which = (path: string, method: string) => boolean;

export class HttpProxy implements Door {
  readonly url: string;
  readonly #server: Http2SecureServer;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #watches = new Set<ServerHttp2Stream>();
  readonly #to: string;
  readonly #cert: string;
  #refused: { isRefused: Which; status: number; retryAfter: number | undefined } | undefined;
  #held: Which = () => false;
  /** The requests without an answer until `resume`. */
  readonly #waiting = new Set<ServerHttp2Stream>();
  /** The refused requests since the last call of `refuse`, with the time of each. */
  refusals: { what: string; at: number }[] = [];

  private constructor(server: Http2SecureServer, to: string, cert: string) {
    this.#server = server;
    this.#to = to;
    this.#cert = cert;
    this.url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("session", (session) => this.#join(session));
  }

  /** Starts a proxy to the API server at `url`. */
  static async start(url: string, identity: Identity): Promise<HttpProxy> {
    const server = createSecureServer(identity).listen(0, "127.0.0.1");
    await once(server, "listening");
    return new HttpProxy(server, url, identity.cert);
  }

  /** Refuses the selected requests from now on, with a Retry-After in seconds. Open watches continue. */
  refuse(isRefused: Which, status: number, retryAfter?: number): void {
    this.#refused = { isRefused, status, retryAfter };
    this.refusals = [];
  }

  /** Leaves the selected requests without an answer from now on. */
  hold(isHeld: Which): void {
    this.#held = isHeld;
  }

  /**
   * Adds an ERROR event with this code to every open watch and ends it, as an API server does. Returns the number of
   * watches.
   */
  breakWatches(code: number, reason: string): number {
    const { size } = this.#watches;
    const object = { kind: "Status", apiVersion: "v1", status: "Failure", code, reason };
    for (const watch of this.#watches) watch.end(`${JSON.stringify({ type: "ERROR", object })}\n`);
    return size;
  }

  resume(): void {
    this.#refused = undefined;
    this.#held = () => false;
    for (const stream of this.#waiting) stream.close();
  }

  async stop(): Promise<void> {
    for (const session of this.#sessions) session.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  /** Uses one connection to the API server for each connection of a client, so that the limits of the API server apply. */
  #join(session: ServerHttp2Session): void {
    const server = connect(this.#to, { ca: this.#cert });
    this.#sessions.add(session);
    server.on("error", () => session.destroy());
    server.on("close", () => session.destroy());
    session.on("error", () => {});
    session.on("close", () => {
      this.#sessions.delete(session);
      server.destroy();
    });
    session.on("stream", (stream, headers) => this.#pass(server, stream, headers));
  }

  #pass(server: ClientHttp2Session, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const path = headers[":path"] ?? "";
    stream.on("error", () => {});
    const method = headers[":method"] ?? "";
    if (this.#refused?.isRefused(path, method)) {
      const { status, retryAfter } = this.#refused;
      this.refusals.push({ what: `${method} ${path.replace(/&timeoutSeconds=\d+/, "")}`, at: performance.now() });
      const later = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
      stream.respond({ ":status": status, "content-type": "application/json", ...later });
      stream.end(JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", code: status }));
      return;
    }
    if (this.#held(path, method)) {
      this.#waiting.add(stream);
      stream.on("close", () => this.#waiting.delete(stream));
      return;
    }
    const request = server.request(headers);
    stream.pipe(request);
    request.on("error", () => stream.close());
    request.on("response", (answer) => {
      if (stream.closed || stream.destroyed) return;
      stream.respond(answer);
      if (path.includes("watch=true")) this.#watches.add(stream);
      request.on("data", (chunk) => stream.writable && stream.write(chunk));
      request.on("end", () => stream.end());
    });
    stream.on("close", () => {
      this.#watches.delete(stream);
      request.close();
    });
  }
}
