/**
 * HTTP servers of this process: of the health checks for the kubelet, and of the state for those who debug it. The state names
 * objects of all namespaces, so it is served on the loopback addresses only.
 */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { AddressInfo, Server } from "node:net";
import type { InstallationProblems } from "./installation-problems.ts";

/** An import would also load Node's WebSocket and fetch, 6 MB that nothing here uses. */
const { createServer } = process.getBuiltinModule("node:http");

const LOOPBACK = ["127.0.0.1", "::1"] as const;
/** A page in a browser can reach a forwarded port by a name of its own, and then sends that name as the host. */
const HOSTS = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i;
/** The system has no IPv6, or no address for it. */
const NO_IPV6 = ["EADDRNOTAVAIL", "EAFNOSUPPORT"];

/** Port 0 takes any free port. Throws Node's error if the port can't be opened. */
export async function serveDebug(port: number, state: () => object): Promise<HttpServer> {
  const create = () =>
    createServer(({ url = "", method, headers: { host = "" } }, response) => {
      if (!HOSTS.test(host)) return answer(response, 403, "use http://localhost:PORT/debug\n");
      if (url.split("?")[0] !== "/debug") return answer(response, 404, "not found\n");
      if (method !== "GET") return answer(response, 405, "GET only\n", { allow: "GET" });
      return answerWithState(response, state);
    });
  const [first, second] = LOOPBACK;
  const server = await listen(create(), port, first);
  const other = await listen(create(), server.port, second).catch(async (error: NodeJS.ErrnoException) => {
    if (NO_IPV6.includes(error.code ?? "")) return undefined;
    await server.stop();
    throw error;
  });
  return {
    port: server.port,
    stop: async () => {
      await Promise.all([server.stop(), other?.stop()]);
    },
  };
}

/** An error here must not end the controller. */
function answerWithState(response: ServerResponse, state: () => object): void {
  const json = { "content-type": "application/json", "cache-control": "no-store" };
  try {
    answer(response, 200, `${JSON.stringify(state(), undefined, 2)}\n`, json);
  } catch {
    answer(response, 500, "the state could not be collected\n");
  }
}

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
    const report = (wrong: string[], text = wrong.length === 0 ? "ok\n" : linesOf(wrong)) =>
      answer(response, wrong.length === 0 ? 200 : 503, text);
    if (path === "/livez") report(livez());
    else if (path === "/readyz") {
      const wrong = readyz();
      report(wrong, new URLSearchParams(query).has("verbose") ? verboseText(wrong, installation) : undefined);
    } else if (path === "/version")
      answer(response, 200, `${JSON.stringify({ version })}\n`, { "content-type": "application/json" });
    else if (path === "/metrics" && metrics !== undefined) void answerWith(response, metrics);
    else if (path === "/metrics") answer(response, 404, "metrics are served at --metrics-port\n");
    else answer(response, 404, "not found\n");
  });
  return listen(server, port);
}

/** In the form of the API server's own health checks: `+` for what works, `-` for what fails, and `!` for what only degrades. */
function verboseText(wrong: readonly string[], { all }: Pick<InstallationProblems, "all">): string {
  return linesOf([
    ...(wrong.length === 0 ? ["[+]watches ok"] : wrong.map((each) => `[-]${each}`)),
    ...[...all].map(([check, problem]) =>
      problem === undefined ? `[+]${check} ok` : `[!]${check} degraded: ${problem.message}`,
    ),
    `readyz check ${wrong.length === 0 ? "passed" : "failed"}`,
  ]);
}

const linesOf = (lines: readonly string[]) => lines.map((line) => `${line}\n`).join("");

export interface HttpServer {
  port: number;
  stop(): Promise<void>;
}

/** The metrics in Prometheus' text format. */
export interface MetricsText {
  contentType: string;
  text(): Promise<string>;
}

/** Port 0 takes any free port. Without a host, it listens on all addresses. Throws Node's error if the port can't be opened, such as EADDRINUSE. */
export async function listen(
  server: Server & { closeAllConnections(): void },
  port: number,
  host?: string,
): Promise<HttpServer> {
  await once(server.listen(port, host), "listening");
  // A connection that can't be accepted, for example without a free file handle, must not stop the server.
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

export function answer(response: ServerResponse, status: number, text: string, headers: Record<string, string> = {}) {
  response.writeHead(status, { "content-type": "text/plain", ...headers }).end(text);
}

/** Answers with the metrics. */
export async function answerWith(response: ServerResponse, metrics: MetricsText): Promise<void> {
  try {
    const body = await metrics.text();
    answer(response, 200, body, { "content-type": metrics.contentType });
  } catch {
    answer(response, 500, "the metrics could not be collected\n");
  }
}
