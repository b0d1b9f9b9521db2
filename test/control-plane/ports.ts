/** Finds free ports, on which nothing listens at any address of this machine. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below the ports that systems use for outgoing connections. A restarted server must find its port free, and a client that
 * retries a port of that range can be connected to itself.
 */
const LOWEST = 20_000;
/** A range for each worker process of the tests, so that they do not find the same ports. */
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
    // Without a host, it listens at all addresses, like the health server, and any listener on the port conflicts.
    server.listen({ port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
