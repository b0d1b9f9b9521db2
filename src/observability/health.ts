/** What is wrong comes in as functions; what the kubelet and Prometheus ask for goes out over HTTP. */
import type { Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** An import of it would also load Node's own WebSocket and fetch, and with them 6 MB that nothing here uses. */
const { createServer } = process.getBuiltinModule("node:http");

export interface HealthServer {
  port: number;
  stop(): Promise<void>;
}

export interface Health {
  /** Why the process should be started anew; empty when it should not. */
  livez(): string[];
  /** Why it does not do its work at the moment. */
  readyz(): string[];
  metrics: { contentType: string; text(): Promise<string> };
}

/** Serves `/livez`, `/readyz` and `/metrics`: 200 `ok`, or 503 with a line for each thing that is wrong. Port 0 takes any. */
export async function serveHealth(port: number, health: Health): Promise<HealthServer> {
  const server = createServer((request, response) => {
    const path = request.url?.split("?")[0];
    if (path === "/livez") answer(response, health.livez());
    else if (path === "/readyz") answer(response, health.readyz());
    else if (path === "/metrics") void scrape(response, health.metrics);
    else response.writeHead(404, TEXT).end("not found\n");
  });
  await listen(server, port);
  return {
    port: (server.address() as AddressInfo).port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const TEXT = { "content-type": "text/plain" };

function answer(response: ServerResponse, wrong: string[]): void {
  if (wrong.length === 0) response.writeHead(200, TEXT).end("ok\n");
  else response.writeHead(503, TEXT).end(wrong.map((each) => `${each}\n`).join(""));
}

async function scrape(response: ServerResponse, metrics: Health["metrics"]): Promise<void> {
  try {
    const body = await metrics.text();
    response.writeHead(200, { "content-type": metrics.contentType }).end(body);
  } catch {
    response.writeHead(500, TEXT).end("the metrics could not be collected\n");
  }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, () => resolve());
  });
}
