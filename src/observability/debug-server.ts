/**
 * Serves the state of the process as JSON, on the loopback addresses only: to people who may forward a port of the pod, or have a shell
 * in it. The state names objects of all namespaces, so no other address is opened.
 */
import type { ServerResponse } from "node:http";
import { answer, type HttpServer, listen } from "./http-server.ts";

const LOOPBACK = ["127.0.0.1", "::1"] as const;
/** A page in a browser can reach a forwarded port by a name of its own, and then sends that name as the host. */
const HOSTS = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i;
/** The system has no IPv6, or no address for it. */
const NO_IPV6 = ["EADDRNOTAVAIL", "EAFNOSUPPORT"];

/** Port 0 takes any free port. Throws Node's error if the port can't be opened. */
export async function serveDebug(port: number, state: () => object): Promise<HttpServer> {
  // Not imported for the same reason as in health.ts, and loaded only when it is used.
  const { createServer } = process.getBuiltinModule("node:http");
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
