/** An HTTP/2 server with TLS, like an API server: tests define its answers, and see its requests. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import {
  createSecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Credentials } from "../../../src/kube/credentials.ts";

export interface Received {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Answers one request, or does not. */
export type Answer = (stream: ServerHttp2Stream, request: Received) => void;

export interface TestServer {
  credentials: Credentials;
  /** Every request, in order. */
  received: Received[];
  /** The connections that are open now. */
  sessions: Set<ServerHttp2Session>;
  /** The number of connections so far. */
  connections: number;
  /** How many streams are open now. */
  openStreams: number;
  /** The handler of all requests from now on. */
  answer: Answer;
  stop(): Promise<void>;
}

/** A self-signed certificate for 127.0.0.1. */
export async function makeCertificate(): Promise<{ cert: Buffer; key: Buffer }> {
  const folder = await mkdtemp(join(tmpdir(), "inlay-tls-"));
  try {
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    const name = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"];
    await promisify(execFile)("openssl", ["req", "-x509", ...kind, ...name, "-keyout", key, "-out", cert]);
    return { cert: await readFile(cert), key: await readFile(key) };
  } finally {
    await rm(folder, { recursive: true });
  }
}

export async function startServer(certificate: { cert: Buffer; key: Buffer }, answer: Answer): Promise<TestServer> {
  const server = createSecureServer({ ...certificate, settings: { maxConcurrentStreams: 100 } });
  const test: TestServer = {
    credentials: {
      server: new URL("https://127.0.0.1"),
      tls: { ca: certificate.cert },
      headers: async () => ({ authorization: "Bearer t" }),
    },
    received: [],
    sessions: new Set(),
    connections: 0,
    openStreams: 0,
    answer,
    async stop() {
      for (const session of test.sessions) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  server.on("session", (session) => {
    test.connections++;
    test.sessions.add(session);
    session.on("close", () => test.sessions.delete(session));
    session.on("error", () => {});
  });
  server.on("stream", (stream, { ":method": method = "", ":path": path = "", ...headers }) => {
    test.openStreams++;
    stream.on("close", () => test.openStreams--);
    stream.on("error", () => {});
    let body = "";
    stream.setEncoding("utf8");
    stream.on("data", (chunk: string) => {
      body += chunk;
    });
    stream.on("end", () => {
      const request = { method, path, headers, body };
      test.received.push(request);
      test.answer(stream, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  test.credentials.server = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return test;
}

/** Answers with JSON. */
export const json =
  (content: unknown, status = 200, headers: Record<string, string> = {}): Answer =>
  (stream) => {
    stream.respond({ ":status": status, "content-type": "application/json", ...headers });
    stream.end(typeof content === "string" ? content : JSON.stringify(content));
  };
