/** Serves the results of the health checks to the kubelet over HTTP. */
import { answer, answerWith, type HttpServer, listen, type MetricsText } from "./http-server.ts";

/** An import would also load Node's WebSocket and fetch, 6 MB that nothing here uses. */
const { createServer } = process.getBuiltinModule("node:http");

export interface Health {
  /** The reasons to restart the process; empty if it is healthy. */
  livez(): string[];
  /** The reasons why it does not work at the moment. */
  readyz(): string[];
  /** The version of this program. */
  version: string;
  /** Served here to everyone, if given. */
  metrics?: MetricsText | undefined;
}

/**
 * Serves `/livez` and `/readyz`: 200 `ok`, or 503 with a line for each failure. Serves `/version` for other replicas, and `/metrics` if
 * given. Port 0 takes any free port.
 */
export function serveHealth(port: number, { livez, readyz, version, metrics }: Health): Promise<HttpServer> {
  const server = createServer((request, response) => {
    const path = request.url?.split("?")[0];
    const report = (wrong: string[]) =>
      wrong.length === 0
        ? answer(response, 200, "ok\n")
        : answer(response, 503, wrong.map((each) => `${each}\n`).join(""));
    if (path === "/livez") report(livez());
    else if (path === "/readyz") report(readyz());
    else if (path === "/version")
      answer(response, 200, `${JSON.stringify({ version })}\n`, { "content-type": "application/json" });
    else if (path === "/metrics" && metrics !== undefined) void answerWith(response, metrics);
    else if (path === "/metrics") answer(response, 404, "metrics are served at --metrics-port\n");
    else answer(response, 404, "not found\n");
  });
  return listen(server, port);
}
