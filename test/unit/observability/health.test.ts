/** The answers to the kubelet and to Prometheus. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { type Health, type HttpServer, serveHealth } from "../../../src/observability/http-server.ts";
import type { InstallationCheck, InstallationProblem } from "../../../src/observability/installation-problems.ts";

describe("the health server", () => {
  let stuck: string[] = [];
  let wrong: string[] = [];
  let text = async () => "up 1\n";
  const all = new Map<InstallationCheck, InstallationProblem | undefined>();
  const health: Health = {
    livez: () => stuck,
    readyz: () => wrong,
    installation: { all },
    version: "1.2.3",
    metrics: { contentType: "text/plain; version=0.0.4", text: () => text() },
  };
  let server: HttpServer;
  before(async () => {
    server = await serveHealth(0, health);
  });
  after(() => server.stop());

  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`);
    return [answer.status, await answer.text()];
  };

  it("reports that the process is alive, ready or not, unless it is stuck", async () => {
    for (wrong of [["pending: secrets"], []]) assert.deepEqual(await ask("/livez"), [200, "ok\n"]);
    stuck = ["stuck: a reconcile has run for 700 s"];
    assert.deepEqual(await ask("/livez"), [503, "stuck: a reconcile has run for 700 s\n"]);
  });

  it("reports whether the controller is ready at the moment, and what is wrong", async () => {
    wrong = ["pending: inlay.dev/secretbindings", "silent: secrets (2 watches)"];
    assert.deepEqual(await ask("/readyz"), [503, "pending: inlay.dev/secretbindings\nsilent: secrets (2 watches)\n"]);
    wrong = [];
    assert.deepEqual(await ask("/readyz"), [200, "ok\n"]);
  });

  it("reports with verbose what is wrong with the installation, which does not make it unready", async () => {
    wrong = [];
    all.set("permissions", undefined);
    all.set("policies", { message: "two are missing", parts: ["a", "b"] });
    const installation = "[+]permissions ok\n[!]policies degraded: two are missing\n";
    assert.deepEqual(await ask("/readyz?verbose"), [200, `[+]watches ok\n${installation}readyz check passed\n`]);
    assert.deepEqual(await ask("/readyz"), [200, "ok\n"]);
    wrong = ["interrupted: secrets"];
    const text = `[-]interrupted: secrets\n${installation}readyz check failed\n`;
    assert.deepEqual(await ask("/readyz?verbose=1"), [503, text]);
    wrong = [];
  });

  it("reports its version for other replicas", async () => {
    assert.deepEqual(await ask("/version"), [200, '{"version":"1.2.3"}\n']);
  });

  it("serves the metrics in their format, and a short error if they can't be collected", async () => {
    const answer = await fetch(`http://127.0.0.1:${server.port}/metrics`);
    assert.equal(answer.headers.get("content-type"), "text/plain; version=0.0.4");
    assert.equal(await answer.text(), "up 1\n");
    text = () => Promise.reject(new Error("a value"));
    assert.deepEqual(await ask("/metrics"), [500, "the metrics could not be collected\n"]);
  });

  it("serves nothing else", async () => {
    for (const path of ["/", "/healthz", "/readyz/x", "/livezz"]) assert.equal((await ask(path))[0], 404, path);
  });

  it("serves no metrics by default", async () => {
    const other = await serveHealth(0, { livez: () => [], readyz: () => [], installation: { all }, version: "1.2.3" });
    const answer = await fetch(`http://127.0.0.1:${other.port}/metrics`);
    assert.equal(answer.status, 404);
    await other.stop();
  });

  it("reports a port that is in use", async () => {
    await assert.rejects(serveHealth(server.port, health), { code: "EADDRINUSE" });
  });

  it("stops while a connection is open", async () => {
    const other = await serveHealth(0, health);
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
