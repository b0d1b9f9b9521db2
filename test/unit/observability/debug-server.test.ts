/** Who can read the debug state: only clients on the same machine. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { get } from "node:http";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { type HttpServer, serveDebug } from "../../../src/observability/http-server.ts";

/** The addresses of this machine that others can reach. */
const OTHERS = Object.values(networkInterfaces()).flatMap((all) =>
  (all ?? []).flatMap(({ address, internal, scopeid }) => (internal || scopeid ? [] : [address])),
);

describe("the debug server", () => {
  let server: HttpServer;
  before(async () => {
    server = await serveDebug(0, () => ({ version: "1.2.3" }));
  });
  after(() => server.stop());

  const ask = async (path: string, host = "localhost", method = "GET") => {
    const request = get({ host: "127.0.0.1", port: server.port, path, method, headers: { host } });
    const [response] = await once(request, "response");
    let text = "";
    for await (const chunk of response) text += chunk;
    return [response.statusCode, text];
  };

  it("serves the state as JSON on 127.0.0.1", async () => {
    const [status, text] = await ask("/debug");
    assert.equal(status, 200);
    assert.deepEqual(JSON.parse(text), { version: "1.2.3" });
    assert.deepEqual((await ask("/debug", "localhost", "POST"))[0], 405);
    for (const path of ["/", "/metrics", "/debug/pprof"]) assert.equal((await ask(path))[0], 404);
  });

  it("refuses the name of another host, which a web page could use", async () => {
    for (const host of ["127.0.0.1:6060", "[::1]:6060", "LOCALHOST"]) assert.equal((await ask("/debug", host))[0], 200);
    for (const host of ["example.com", "localhost.example.com", "127.0.0.1.example.com"])
      assert.equal((await ask("/debug", host))[0], 403, host);
  });

  it("can't be reached at any other address of the machine", async () => {
    // 127.0.0.2 is on loopback too, so this test also asserts something on a machine without a network.
    for (const host of ["127.0.0.2", ...OTHERS]) {
      const socket = connect({ host, port: server.port });
      const [error] = await Promise.race([
        once(socket, "connect").then(() => [undefined]),
        once(socket, "error"),
      ]).catch((failure: unknown) => [failure]);
      socket.destroy();
      assert.equal((error as NodeJS.ErrnoException | undefined)?.code, "ECONNREFUSED", host);
    }
  });

  it("answers with an error if the state can't be collected, and goes on", async () => {
    const broken = await serveDebug(0, () => ({ count: 1n }));
    try {
      for (let i = 0; i < 2; i++) {
        const [response] = await once(get({ host: "127.0.0.1", port: broken.port, path: "/debug" }), "response");
        response.resume();
        assert.equal(response.statusCode, 500);
      }
    } finally {
      await broken.stop();
    }
  });

  it("fails at its start if another process has the port", async () => {
    await assert.rejects(
      serveDebug(server.port, () => ({})),
      { code: "EADDRINUSE" },
    );
  });
});
