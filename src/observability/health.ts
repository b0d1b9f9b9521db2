/** What is wrong comes in as functions; what the kubelet asks for goes out over HTTP. */
import { answer, answerWith, type HttpServer, listen, type MetricsText } from "./http-server.ts";

/** An import of it would also load Node's own WebSocket and fetch, and with them 6 MB that nothing here uses. */
const { createServer } = process.getBuiltinModule("node:http");

export interface Health {
  /** Why the process should be started anew; empty when it should not. */
  livez(): string[];
  /** Why it does not do its work at the moment. */
  readyz(): string[];
  /** Of this program. */
  version: string;
  /** Served here to everyone, if they are given. */
  metrics?: MetricsText | undefined;
}

/**
 * Serves `/livez` and `/readyz`: 200 `ok`, or 503 with a line for each thing that is wrong. Serves `/version`, for the leader, and `/metrics`
 * too, if they are given. Port 0 takes any.
 */
export function serveHealth(port: number, { livez, readyz, version, metrics }: Health): Promise<HttpServer> {
  const server = createServer((request, response) => {
    const path = request.url?.split("?")[0];
    const tell = (wrong: string[]) =>
      wrong.length === 0
        ? answer(response, 200, "ok\n")
        : answer(response, 503, wrong.map((each) => `${each}\n`).join(""));
    if (path === "/livez") tell(livez());
    else if (path === "/readyz") tell(readyz());
    else if (path === "/version")
      answer(response, 200, `${JSON.stringify({ version })}\n`, { "content-type": "application/json" });
    else if (path === "/metrics" && metrics !== undefined) void answerWith(response, metrics);
    else if (path === "/metrics") answer(response, 404, "metrics are served at --metrics-port\n");
    else answer(response, 404, "not found\n");
  });
  return listen(server, port);
}
