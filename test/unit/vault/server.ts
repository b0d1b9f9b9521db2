/** A server whose answers a test sets, and which records its requests. Also the parts of a connection to it. */
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { VaultAddresses } from "../../../src/api/vault-addresses.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import type { ConnectionServices, ConnectionSettings } from "../../../src/vault/connection.ts";
import { secretText } from "../../controller/leak-detector.ts";

export interface Received {
  method: string;
  /** With its query. */
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export type Answer = (request: Received, response: ServerResponse) => void;

export interface TestServer {
  readonly url: URL;
  /** Every request, in order of arrival. */
  readonly received: Received[];
  /** The number of connections. */
  connections: number;
  /** Sets the answers from now on. */
  answer: Answer;
  /** `GET /v1/kv/data/x` of each request, except logins. */
  paths(): string[];
  /** Closes all connections and stops listening. */
  stop(): Promise<void>;
  /** Listens again at the same port. */
  restart(): Promise<void>;
}

export async function startServer(answer: Answer, certificate?: { cert: Buffer; key: Buffer }): Promise<TestServer> {
  const sockets = new Set<Socket>();
  const listener: RequestListener = (incoming, response) => {
    let body = "";
    incoming.setEncoding("utf8");
    incoming.on("data", (chunk: string) => {
      body += chunk;
    });
    incoming.on("end", () => {
      const { method = "", url: path = "", headers } = incoming;
      const request = { method, path, headers, body };
      test.received.push(request);
      test.answer(request, response);
    });
  };
  const server = certificate === undefined ? createServer(listener) : createTlsServer(certificate, listener);
  server.on("connection", (socket: Socket) => {
    test.connections++;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  server.on("tlsClientError", () => {});
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const test: TestServer = {
    url: new URL(`${certificate === undefined ? "http" : "https"}://127.0.0.1:${port}`),
    received: [],
    connections: 0,
    answer,
    paths: () =>
      test.received.filter(({ path }) => !path.endsWith("/login")).map(({ method, path }) => `${method} ${path}`),
    async stop() {
      if (!server.listening) return;
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    restart: () => listen(port),
  };
  return test;
}

/** Answers with JSON; a string is sent as it is. */
export function json(response: ServerResponse, content: unknown, status = 200, headers: Record<string, string> = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(typeof content === "string" ? content : JSON.stringify(content));
}

/** As Vault denies a request. */
export const denied = (response: ServerResponse, ...more: string[]) =>
  json(response, { errors: ["permission denied", ...more] }, 403);

/** By method and path, such as `GET /v1/kv/data/x`. All other requests get Vault's answer for a missing path. */
export const routes =
  (answers: Record<string, Answer>): Answer =>
  (request, response) => {
    const answer = answers[`${request.method} ${request.path}`];
    if (answer === undefined) return json(response, { errors: [] }, 404);
    answer(request, response);
  };

/** A login whose token lasts an hour, unless `auth` differs. */
export function login(token: string, auth: Record<string, unknown> = {}): Answer {
  return (_, response) =>
    json(response, {
      auth: { client_token: token, lease_duration: 3600, renewable: true, token_type: "service", ...auth },
    });
}

/** The counted metrics, such as `login 200`. */
export class Counts {
  readonly requests: string[] = [];
  readonly logins: string[] = [];
  reads = 0;
  requested(operation: string, code: string): void {
    this.requests.push(`${operation} ${code}`);
  }
  loggedIn(outcome: string): void {
    this.logins.push(outcome);
  }
  readSeconds(): void {
    this.reads++;
  }
}

export const READER = { identity: "system:serviceaccount:registry:inlay", namespace: "registry" };

export const KUBERNETES = {
  kind: "kubernetes",
  mount: "kubernetes",
  role: "inlay-{namespace}",
  audiences: ["vault"],
} as const;

export function settingsFor(url: URL, settings: Partial<ConnectionSettings> = {}): ConnectionSettings {
  return { key: "registry/vault", address: url, timeoutMs: 2_000, auth: KUBERNETES, ...settings };
}

/** Allows 127.0.0.1, unless addresses are given. */
export function servicesFor(services: Partial<ConnectionServices> = {}): ConnectionServices & { metrics: Counts } {
  return {
    addresses: new VaultAddresses(["127.0.0.1", "http://127.0.0.1"]),
    requestToken: async () => new SecretValue(secretText("jwt")),
    metrics: new Counts(),
    cpu: { run: async (_: string, work: () => unknown) => work() },
    ...services,
  } as ConnectionServices & { metrics: Counts };
}

/** The texts of an answer by key. */
export function textsIn(
  data: ReadonlyMap<string, SecretValue<Uint8Array>> | undefined,
): Record<string, string> | undefined {
  if (data === undefined) return undefined;
  return Object.fromEntries([...data].map(([key, value]) => [key, Buffer.from(value.reveal()).toString()]));
}
