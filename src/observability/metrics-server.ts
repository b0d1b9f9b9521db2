/**
 * Serves `/metrics` over HTTPS to users who may `get` it. As with controller-runtime, bearer tokens are never sent in plain text, and the
 * certificate is self-signed unless one is given.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Server, Socket } from "node:net";
import { answer, answerWith, type HttpServer, listen, type MetricsText } from "./http-server.ts";
import type { Log } from "./log.ts";
import type { MetricsAccess, ScrapeStatus } from "./metrics-access.ts";
import { ServingCertificate } from "./serving-certificate.ts";

export interface MetricsServerOptions {
  port: number;
  /** Has `tls.crt` and `tls.key`. Without it, the certificate is self-signed. */
  certDir: string | undefined;
  metrics: MetricsText;
  /** Called once with the time at which the certificate in use expires, in seconds since 1970. */
  observeCertificate?(expiresAt: () => number): void;
  access: Pick<MetricsAccess, "check" | "knows">;
  log: Pick<Log, "info" | "error">;
}

/**
 * A scraper needs one connection. If more than this many connections have not read the metrics, each new one closes another. Clients that
 * send nothing, or too slowly, are disconnected.
 */
const MAX_CONNECTIONS = 100;
const SLOW_MS = 10_000;
/** How often Node looks for slow clients. */
const CHECKED_EVERY_MS = 1_000;
/** How long a scraper's connection is kept between scrapes, which are a minute apart by default. */
const KEPT_MS = 90_000;

const REFUSALS: Record<Exclude<ScrapeStatus, 200>, [text: string, headers?: Record<string, string>]> = {
  401: ["send the token of a ServiceAccount: Authorization: Bearer TOKEN\n", { "www-authenticate": "Bearer" }],
  403: ["you may not get /metrics; bind the ClusterRole inlay-metrics-reader to this account\n"],
  429: ["too many unknown tokens at once\n", { "retry-after": "1" }],
  503: ["the API server did not answer whether you may get /metrics; see the controller's log\n"],
};

/** Throws Error if the certificate can't be used, or Node's error if the port can't be opened. */
export async function serveMetrics(options: MetricsServerOptions): Promise<HttpServer> {
  const { port, certDir, metrics, access, log } = options;
  const certificate = await ServingCertificate.load(certDir, log);
  options.observeCertificate?.(() => certificate.expiresAt);
  const handle = async ({ url = "", method, headers, socket }: IncomingMessage, response: ServerResponse) => {
    // Only clients that may scrape keep their connection.
    response.setHeader("connection", "close");
    if (url.split("?")[0] !== "/metrics") return answer(response, 404, "not found\n");
    if (method !== "GET") return answer(response, 405, "GET only\n", { allow: "GET" });
    const status = await access.check(headers.authorization, socket.remoteAddress);
    if (status !== 200) return answer(response, status, ...REFUSALS[status]);
    response.removeHeader("connection");
    connections.keep(socket);
    return answerWith(response, metrics);
  };
  // Not imported for the same reason as in health.ts, and loaded only when it is used.
  const { createServer } = process.getBuiltinModule("node:https");
  const slow = { handshakeTimeout: SLOW_MS, headersTimeout: SLOW_MS, requestTimeout: SLOW_MS };
  const limits = { ...slow, keepAliveTimeout: KEPT_MS, connectionsCheckingInterval: CHECKED_EVERY_MS };
  const server = createServer({ ...certificate.current, ...limits }, (request, response) => {
    void handle(request, response);
  });
  const connections = new Connections(server, access);
  const { port: taken, stop } = await listen(server, port);
  certificate.follow((pair) => server.setSecureContext(pair));
  return {
    port: taken,
    stop: () => {
      certificate.stop();
      return stop();
    },
  };
}

/** Limits the connections that have not read the metrics, so that one address can't prevent connections of another. */
class Connections {
  /** By address and port, in the order in which they were opened. */
  readonly #strangers = new Map<string, Map<number, Socket>>();
  readonly #access: Pick<MetricsAccess, "knows">;

  constructor(server: Server, access: Pick<MetricsAccess, "knows">) {
    this.#access = access;
    // The same number is reserved for clients that may scrape.
    server.maxConnections = 2 * MAX_CONNECTIONS;
    server.on("connection", (socket) => {
      const { remoteAddress = "", remotePort = 0 } = socket;
      const sockets = this.#strangers.get(remoteAddress) ?? new Map<number, Socket>();
      this.#strangers.set(remoteAddress, sockets.set(remotePort, socket));
      socket.once("close", () => this.#remove(remoteAddress, remotePort));
      this.#excess()?.destroy();
    });
  }

  /** Stops counting the connection. `socket` is the TLS socket, not that of the server's event. */
  keep({ remoteAddress = "", remotePort = 0 }: Socket): void {
    this.#remove(remoteAddress, remotePort);
  }

  #remove(address: string, port: number): void {
    const sockets = this.#strangers.get(address);
    sockets?.delete(port);
    if (sockets?.size === 0) this.#strangers.delete(address);
  }

  /**
   * Above the limit: the oldest connection of the address with the most. If several have the most, of an address without an allowed token.
   */
  #excess(): Socket | undefined {
    let [total, most, oldest]: [number, number, Socket | undefined] = [0, 0, undefined];
    for (const [address, sockets] of this.#strangers) {
      total += sockets.size;
      const weight = sockets.size - (this.#access.knows(address) ? 0.5 : 0);
      if (weight > most) [most, [oldest]] = [weight, sockets.values()];
    }
    return total > MAX_CONNECTIONS ? oldest : undefined;
  }
}
