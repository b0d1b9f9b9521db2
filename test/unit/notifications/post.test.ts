/** Posts to a real server: one POST, no redirect, only trusted certificates, and no part of the URL in errors. */
import assert from "node:assert/strict";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { post } from "../../../src/notifications/notifier.ts";
import { secretText } from "../../controller/leak-detector.ts";
import { makeCertificate } from "../kube/server.ts";
import { type Answer, startServer, type TestServer } from "../vault/server.ts";

describe("a message to a receiver", () => {
  const servers: TestServer[] = [];
  const never = new AbortController().signal;
  const path = `/hook/${secretText("path")}?a=b`;

  after(() => Promise.all(servers.map((each) => each.stop())));

  async function serving(answer: Answer, certificate?: { cert: Buffer; key: Buffer }): Promise<TestServer> {
    const server = await startServer(answer, certificate);
    servers.push(server);
    return server;
  }
  const sendTo = ({ url }: TestServer, signal = never) => post(new SecretValue(new URL(path, url)), '{"a":1}', signal);

  it("is one POST of JSON, to the path and query of the URL", async () => {
    const server = await serving((_, response) => response.writeHead(202).end("taken"));
    assert.deepEqual(await sendTo(server), { outcome: "sent" });
    const [{ method, path: asked, headers, body } = assert.fail(), ...more] = server.received;
    assert.deepEqual([method, asked, headers["content-type"], body], ["POST", path, "application/json", '{"a":1}']);
    assert.equal(more.length, 0);
  });

  it("follows no redirect, and reports it", async () => {
    const other = await serving((_, response) => response.end());
    const server = await serving((_, response) => response.writeHead(307, { location: other.url.href }).end());
    assert.deepEqual(await sendTo(server), {
      outcome: "rejected",
      why: "the receiver answered with status 307; redirects are not followed, so set the final URL",
    });
    assert.equal(other.received.length, 0);
  });

  it("is not sent to a server with an untrusted certificate", async () => {
    const server = await serving((_, response) => response.end(), await makeCertificate());
    assert.deepEqual(await sendTo(server), { outcome: "retry", why: "no connection (DEPTH_ZERO_SELF_SIGNED_CERT)" });
    assert.equal(server.received.length, 0);
  });

  it("is retried if no server listens, and is cancelled when the controller stops while the server is silent", async () => {
    const server = await serving(() => {});
    const stop = new AbortController();
    const sending = sendTo(server, stop.signal);
    while (server.received.length === 0) await new Promise((resolve) => setImmediate(resolve));
    stop.abort();
    assert.deepEqual(await sending, { outcome: "retry", why: "the controller is stopping" });
    await server.stop();
    assert.deepEqual(await sendTo(server), { outcome: "retry", why: "no connection (ECONNREFUSED)" });
  });
});
