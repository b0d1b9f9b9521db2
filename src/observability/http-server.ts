/** What the servers for probes, metrics and the debug state share: listening, stopping without waiting for clients, and answers. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { AddressInfo, Server } from "node:net";

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
