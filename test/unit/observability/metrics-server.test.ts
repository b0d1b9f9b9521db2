/** Which clients keep a connection to the metrics port. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectPlain, type Socket } from "node:net";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import type { HttpServer } from "../../../src/observability/http-server.ts";
import { serveMetrics } from "../../../src/observability/metrics-server.ts";
import { eventually } from "../../controller/eventually.ts";

describe("the metrics port", () => {
  let server: HttpServer;
  const open: Socket[] = [];
  const letIn = new Set<string>();
  before(async () => {
    const log = { info: () => undefined, error: () => undefined };
    const metrics = { contentType: "text/plain", text: async () => "up 1\n" };
    const access = {
      check: async (sent?: string, address = "") => {
        if (sent !== "Bearer scraper") return 401;
        letIn.add(address);
        return 200;
      },
      knows: (address: string) => letIn.has(address),
    };
    server = await serveMetrics({ port: 0, certDir: undefined, metrics, access, log });
  });
  after(async () => {
    for (const socket of open) socket.destroy();
    await server.stop();
  });

  async function dial(from?: string): Promise<TLSSocket> {
    const place = { host: from && "127.0.0.1", localAddress: from, port: server.port };
    const socket = connect({ ...place, rejectUnauthorized: false } as ConnectionOptions);
    socket.on("error", () => undefined);
    open.push(socket);
    await once(socket, "secureConnect");
    return socket;
  }
  const ask = async (socket: TLSSocket, token: string): Promise<string> => {
    socket.write(`GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    const [answer] = await once(socket, "data");
    return String(answer);
  };

  it("closes only the connections of clients that may not scrape", async () => {
    const stranger = await dial();
    const closed = once(stranger, "close");
    assert.match(await ask(stranger, "unknown"), /^HTTP\/1\.1 401 .*^connection: close/ims);
    await closed;
    const scraper = await dial();
    for (let n = 0; n < 2; n++) assert.match(await ask(scraper, "scraper"), /^HTTP\/1\.1 200 /);
  });

  it("keeps the connection of a scraper, however many clients send nothing", async () => {
    const early = await dial();
    assert.match(await ask(early, "scraper"), /^HTTP\/1\.1 200 /);
    const silent = await Promise.all(Array.from({ length: 100 }, () => dial()));
    const gone = Promise.any(silent.map((socket) => once(socket, "close")));
    const late = await dial();
    assert.match(await ask(late, "scraper"), /^HTTP\/1\.1 200 /);
    await gone;
    assert.match(await ask(early, "scraper"), /^HTTP\/1\.1 200 /);
  });

  /** Opens connections that send nothing, and waits until the server has closed those above the limit. */
  async function flood(sources: readonly string[]): Promise<void> {
    let closed = 0;
    const silent = sources.map((localAddress) => {
      const socket = connectPlain({ host: "127.0.0.1", port: server.port, localAddress });
      socket.on("error", () => undefined);
      socket.once("close", () => (closed += 1));
      open.push(socket);
      return socket;
    });
    await Promise.all(silent.map((socket) => once(socket, "connect")));
    await eventually(() => assert.ok(closed >= sources.length - 100));
  }
  const clear = async () => {
    const left = open.splice(0).filter(({ closed }) => !closed);
    for (const socket of left) socket.destroy();
    await Promise.all(left.map((socket) => once(socket, "close")));
  };

  it("closes no connection of one address because of another address", async () => {
    await clear();
    const scraper = await dial("127.0.0.2");
    await flood(Array(300).fill("127.0.0.3"));
    assert.match(await ask(scraper, "scraper"), /^HTTP\/1\.1 200 /);
  }).timeout("10s");

  it("accepts a new connection of an address with an allowed token, however many addresses send nothing", async () => {
    await clear();
    assert.match(await ask(await dial("127.0.0.4"), "scraper"), /^HTTP\/1\.1 200 /);
    const scraper = await dial("127.0.0.4");
    await flood(Array.from({ length: 250 }, (_, n) => `127.0.1.${n + 1}`));
    assert.match(await ask(scraper, "scraper"), /^HTTP\/1\.1 200 /);
  }).timeout("10s");
});
