/** Finds ports that nothing listens on, at any address of this machine: a number comes in, as many ports go out. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below the ports that systems give to outgoing connections. A server that is killed and started again must find its
 * port free, and a client that keeps trying a port of that range can end up connected to itself.
 */
const LOWEST = 20_000;
/** For each worker process of the tests, so that none takes what another has just found free. */
const RANGE = 1_000;
const WORKERS = 12;
const lowest = LOWEST + (Number(process.env["MOCHA_WORKER_ID"] ?? 0) % WORKERS) * RANGE;

export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(lowest, lowest + RANGE);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    // Without a host it is at all addresses, as the health server is, which a listener at any one of them keeps from the port.
    server.listen({ port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
