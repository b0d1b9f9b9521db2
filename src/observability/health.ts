/** What is wrong comes in as functions; what the kubelet and Prometheus ask for goes out over HTTP. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
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
  await once(server.listen(port), "listening");
  // A connection that can't be accepted, such as for want of a file handle, ends nothing else.
  server.on("error", () => {});
  return {
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      const closed = once(server.close(), "close");
      server.closeAllConnections();
      await closed;
    },
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
