/** What the servers for probes and for metrics share: a port, a stop that waits for no client, and the answers. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { AddressInfo, Server } from "node:net";

export interface HttpServer {
  port: number;
  stop(): Promise<void>;
}

/** What the controller measures, as Prometheus' text. */
export interface MetricsText {
  contentType: string;
  text(): Promise<string>;
}

/** Port 0 takes any. Throws what Node throws where the port can't be taken, such as EADDRINUSE. */
export async function listen(server: Server & { closeAllConnections(): void }, port: number): Promise<HttpServer> {
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
