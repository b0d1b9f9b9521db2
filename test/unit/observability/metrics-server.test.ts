/** Who keeps a connection to the metrics port. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";
import type { HttpServer } from "../../../src/observability/http-server.ts";
import { serveMetrics } from "../../../src/observability/metrics-server.ts";

describe("the metrics port", () => {
  let server: HttpServer;
  const open: TLSSocket[] = [];
  before(async () => {
    const log = { info: () => undefined, error: () => undefined };
    const metrics = { contentType: "text/plain", text: async () => "up 1\n" };
    const access = { check: async (sent?: string) => (sent === "Bearer scraper" ? 200 : 401) as 200 | 401 };
    server = await serveMetrics({ port: 0, certDir: undefined, metrics, access, log });
  });
  after(async () => {
    for (const socket of open) socket.destroy();
    await server.stop();
  });

  async function dial(): Promise<TLSSocket> {
    const socket = connect({ port: server.port, rejectUnauthorized: false });
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

  it("closes the connection of those who may not scrape, and of nobody else", async () => {
    const stranger = await dial();
    const closed = once(stranger, "close");
    assert.match(await ask(stranger, "unknown"), /^HTTP\/1\.1 401 .*^connection: close/ims);
    await closed;
    const scraper = await dial();
    for (let n = 0; n < 2; n++) assert.match(await ask(scraper, "scraper"), /^HTTP\/1\.1 200 /);
  });

  it("gives a scraper a connection, and leaves it that, however many say nothing", async () => {
    const early = await dial();
    assert.match(await ask(early, "scraper"), /^HTTP\/1\.1 200 /);
    const silent = await Promise.all(Array.from({ length: 100 }, dial));
    const gone = Promise.any(silent.map((socket) => once(socket, "close")));
    const late = await dial();
    assert.match(await ask(late, "scraper"), /^HTTP\/1\.1 200 /);
    await gone;
    assert.match(await ask(early, "scraper"), /^HTTP\/1\.1 200 /);
  });
});
