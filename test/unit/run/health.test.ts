/** What the kubelet is told. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { type HealthServer, serveHealth } from "../../../src/run/health.ts";

describe("the health server", () => {
  let ready = false;
  let server: HealthServer;
  before(async () => {
    server = await serveHealth(0, () => ready);
  });
  after(() => server.stop());

  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`);
    return [answer.status, await answer.text()];
  };

  it("says that the process lives, ready or not", async () => {
    for (ready of [false, true]) assert.deepEqual(await ask("/livez"), [200, "ok\n"]);
  });

  it("says whether the controller is ready, as it is at the moment", async () => {
    ready = false;
    assert.deepEqual(await ask("/readyz"), [503, "not ready\n"]);
    ready = true;
    assert.deepEqual(await ask("/readyz"), [200, "ok\n"]);
  });

  it("serves nothing else", async () => {
    ready = true;
    for (const path of ["/", "/healthz", "/readyz/x", "/livezz"]) assert.equal((await ask(path))[0], 404, path);
  });

  it("says so when its port is taken", async () => {
    await assert.rejects(
      serveHealth(server.port, () => true),
      { code: "EADDRINUSE" },
    );
  });

  it("stops while a connection is held open", async () => {
    const other = await serveHealth(0, () => true);
    const socket = connect(other.port, "127.0.0.1");
    await new Promise((resolve) => socket.once("connect", resolve));
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.resume();
    socket.on("error", () => {});
    await other.stop();
    await closed;
    await assert.rejects(fetch(`http://127.0.0.1:${other.port}/livez`));
  });
});
