/** Serves the results of the health checks to the kubelet over HTTP. */
import { answer, answerWith, type HttpServer, listen, type MetricsText } from "./http-server.ts";
import type { InstallationProblems } from "./installation-problems.ts";

/** An import would also load Node's WebSocket and fetch, 6 MB that nothing here uses. */
const { createServer } = process.getBuiltinModule("node:http");

export interface Health {
  /** The reasons to restart the process; empty if it is healthy. */
  livez(): string[];
  /** The reasons why it does not work at the moment. */
  readyz(): string[];
  /** What is wrong with the installation, by check. It does not make the process unready. */
  installation: Pick<InstallationProblems, "all">;
  /** The version of this program. */
  version: string;
  /** Served here to everyone, if given. */
  metrics?: MetricsText | undefined;
}

/**
 * Serves `/livez` and `/readyz`: 200 `ok`, or 503 with a line for each failure. `/readyz?verbose` also shows the installation. Serves
 * `/version` for other replicas, and `/metrics` if given. Port 0 takes any free port.
 */
export function serveHealth(
  port: number,
  { livez, readyz, installation, version, metrics }: Health,
): Promise<HttpServer> {
  const server = createServer((request, response) => {
    const [path, query] = request.url?.split("?") ?? [];
    const report = (wrong: string[]) =>
      wrong.length === 0
        ? answer(response, 200, "ok\n")
        : answer(response, 503, wrong.map((each) => `${each}\n`).join(""));
    if (path === "/livez") report(livez());
    else if (path === "/readyz" && new URLSearchParams(query).has("verbose")) {
      const wrong = readyz();
      answer(response, wrong.length === 0 ? 200 : 503, verboseText(wrong, installation));
    } else if (path === "/readyz") report(readyz());
    else if (path === "/version")
      answer(response, 200, `${JSON.stringify({ version })}\n`, { "content-type": "application/json" });
    else if (path === "/metrics" && metrics !== undefined) void answerWith(response, metrics);
    else if (path === "/metrics") answer(response, 404, "metrics are served at --metrics-port\n");
    else answer(response, 404, "not found\n");
  });
  return listen(server, port);
}

/** In the form of the API server's own health checks: `+` for what works, `-` for what fails, and `!` for what only degrades. */
function verboseText(wrong: readonly string[], { all }: Pick<InstallationProblems, "all">): string {
  const lines = [
    ...(wrong.length === 0 ? ["[+]watches ok"] : wrong.map((each) => `[-]${each}`)),
    ...[...all].map(([check, problem]) =>
      problem === undefined ? `[+]${check} ok` : `[!]${check} degraded: ${problem.message}`,
    ),
    `readyz check ${wrong.length === 0 ? "passed" : "failed"}`,
  ];
  return lines.map((line) => `${line}\n`).join("");
}
