/** Finds ports on 127.0.0.1 that nobody listens on: a number comes in, as many ports go out. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below the ports that systems give to outgoing connections. A server that is killed and started again must find its
 * port free, and a client that keeps trying a port of that range can end up connected to itself.
 */
const LOWEST = 20_000;
const HIGHEST = 32_000;

export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(LOWEST, HIGHEST);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => resolve(true)));
  });
}
