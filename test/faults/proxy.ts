/**
 * A TCP proxy between a controller and its API server that fails as networks do. On command it cuts connections or stops
 * forwarding. It sees bytes only, so TLS and HTTP/2 are those of the API server.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export class TcpProxy {
  readonly url: string;
  readonly #server: Server;
  /** Both ends of each connection. */
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #isStalled = false;
  #accepted = 0;

  private constructor(server: Server, to: URL) {
    this.#server = server;
    this.url = `${to.protocol}//127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("connection", (socket) => this.#join(socket, connect(Number(to.port), to.hostname)));
  }

  /** Starts a proxy to the address of `url`. */
  static async start(url: string): Promise<TcpProxy> {
    const server = createServer({ pauseOnConnect: true }).listen(0, "127.0.0.1");
    await once(server, "listening");
    return new TcpProxy(server, new URL(url));
  }

  /** The number of connections so far. */
  get accepted(): number {
    return this.#accepted;
  }

  /** The number of open connections. */
  get open(): number {
    return this.#pairs.size;
  }

  /** Cuts every connection, as a load balancer does that restarts. Returns the number of connections. */
  cut(): number {
    const { open } = this;
    for (const [client, server] of this.#pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
    return open;
  }

  /** Forwards no byte from now on, in either direction. Connections stay open, and new ones are accepted. */
  stall(): void {
    this.#isStalled = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  /** Forwards no byte for some time. */
  async stallFor(ms: number): Promise<void> {
    this.stall();
    await sleep(ms);
    this.resume();
  }

  /** Forwards everything again, also the bytes that it held back. */
  resume(): void {
    this.#isStalled = false;
    for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  async stop(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }

  #join(client: Socket, server: Socket): void {
    const pair = [client, server] as const;
    this.#accepted++;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [server, client] as const]) {
      from.on("data", (bytes) => to.write(bytes));
      from.on("error", () => {});
      from.on("close", () => {
        this.#pairs.delete(pair);
        to.destroy();
      });
      if (this.#isStalled) from.pause();
      else from.resume();
    }
  }
}
