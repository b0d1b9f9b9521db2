/** Whether the controller lives and is ready comes in as functions; two HTTP endpoints for the kubelet go out. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface HealthServer {
  port: number;
  stop(): Promise<void>;
}

/** Serves `/livez` and `/readyz`: 200 `ok`, or 503. Port 0 takes any free one. */
export async function serveHealth(port: number, isReady: () => boolean): Promise<HealthServer> {
  const server = createServer((request, response) => {
    const ok = request.url === "/livez" || (request.url === "/readyz" && isReady());
    const known = request.url === "/livez" || request.url === "/readyz";
    response.writeHead(ok ? 200 : known ? 503 : 404, { "content-type": "text/plain" }).end(ok ? "ok\n" : "not ready\n");
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

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, () => resolve());
  });
}
