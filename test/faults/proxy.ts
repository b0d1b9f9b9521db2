/**
 * What stands between a controller and its API server, and fails as networks do: an address comes in, another one that
 * leads there goes out, on which connections are cut or go silent on command. It sees bytes only, so that TLS and HTTP/2
 * are those of the API server itself.
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

  /** Begins to lead to where `url` does. */
  static async start(url: string): Promise<TcpProxy> {
    const server = createServer({ pauseOnConnect: true }).listen(0, "127.0.0.1");
    await once(server, "listening");
    return new TcpProxy(server, new URL(url));
  }

  /** How many connections there were. */
  get accepted(): number {
    return this.#accepted;
  }

  /** How many there are. */
  get open(): number {
    return this.#pairs.size;
  }

  /** Cuts every connection, as a load balancer does that is started anew. Returns how many there were. */
  cut(): number {
    const { open } = this;
    for (const [client, server] of this.#pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
    return open;
  }

  /** From now on no byte passes, either way. Connections stay open, and more are taken. */
  stall(): void {
    this.#isStalled = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  /** Lets no byte pass for some time, which is the fault itself. */
  async stallFor(ms: number): Promise<void> {
    this.stall();
    await sleep(ms);
    this.resume();
  }

  /** Lets everything pass again, also what was held back. */
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
