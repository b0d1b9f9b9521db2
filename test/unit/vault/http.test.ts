/** Requests to a server that misbehaves: where the token is sent, how long a request takes, and how much of an answer is read. */
import assert from "node:assert/strict";
import { VaultAddresses } from "../../../src/api/vault-addresses.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { selfSigned } from "../../../src/observability/metrics-server.ts";
import type { ConnectionServices, ConnectionSettings } from "../../../src/vault/connection.ts";
import { VaultHttp, type VaultRequest } from "../../../src/vault/http.ts";
import { HttpFailure } from "../../../src/vault/http-failure.ts";
import { secretText } from "../../controller/leak-detector.ts";
import { makeCertificate } from "../kube/server.ts";
import { type Answer, type Counts, json, servicesFor, settingsFor, startServer, type TestServer } from "./server.ts";

describe("a request to Vault", () => {
  const servers: TestServer[] = [];
  const clients: VaultHttp[] = [];
  const token = new SecretValue(secretText("token"));
  const GET: VaultRequest = { operation: "data", method: "GET", path: "kv/data/x", token };
  let counts: Counts;

  async function serving(answer: Answer, certificate?: { cert: Buffer; key: Buffer }): Promise<TestServer> {
    const server = await startServer(answer, certificate);
    servers.push(server);
    return server;
  }
  function clientOf(
    { url }: { url: URL },
    settings: Partial<ConnectionSettings> = {},
    services: Partial<ConnectionServices> = {},
  ): VaultHttp {
    const given = servicesFor(services);
    counts = given.metrics;
    const client = new VaultHttp(settingsFor(url, settings), given);
    clients.push(client);
    return client;
  }
  const fails = (sent: Promise<unknown>, kind: string) =>
    assert.rejects(sent, (error) => error instanceof HttpFailure && error.kind === kind);
  const ok: Answer = (_, response) => json(response, { data: {} });
  const redirecting =
    (to: () => URL | string, status = 307): Answer =>
    (_, response) =>
      json(response, {}, status, { location: `${to()}` });

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    await Promise.all(servers.splice(0).map((server) => server.stop()));
  });

  it("has the token and the namespace, over connections that are kept alive", async () => {
    const server = await serving(ok);
    const client = clientOf(server, { namespace: "team-a" });
    for (let turn = 0; turn < 10; turn++) assert.equal((await client.send(GET)).status, 200);
    const [first] = server.received;
    assert.equal(first?.path, "/v1/kv/data/x");
    assert.equal(first.headers["x-vault-request"], "true");
    assert.equal(first.headers["x-vault-token"], token.reveal());
    assert.equal(first.headers["x-vault-namespace"], "team-a");
    assert.equal(first.headers["accept-encoding"], undefined);
    // The first connection is still busy when the second request arrives.
    assert.ok(server.connections <= 2);
    assert.deepEqual(counts.requests, Array(10).fill("data 200"));
  });

  it("about health has neither", async () => {
    const server = await serving(ok);
    await clientOf(server, { namespace: "team-a" }).send({ operation: "health", method: "GET", path: "sys/health" });
    const [first] = server.received;
    assert.ok(first !== undefined && !("x-vault-token" in first.headers) && !("x-vault-namespace" in first.headers));
  });

  it("ends when the deadline passes: before an answer, within one that never ends, and in the queue", async () => {
    const server = await serving(() => {});
    const client = clientOf(server, { timeoutMs: 200 });
    await fails(client.send(GET), "timeout");
    server.answer = (_, response) => {
      response.writeHead(200);
      const dripping = setInterval(() => response.write(" "), 20);
      response.on("close", () => clearInterval(dripping));
    };
    await fails(client.send(GET), "timeout");
    assert.deepEqual(counts.requests, ["data timeout", "data timeout"]);
    let arrived = 0;
    server.answer = () => {
      arrived++;
    };
    // A busy machine may need some time for the connections.
    const queueing = clientOf(server, { timeoutMs: 1_000 });
    const sent = Array.from({ length: 20 }, () => queueing.send(GET));
    // No connection is free before the first deadline.
    await fails(Promise.race(sent), "timeout");
    assert.equal(arrived, 8);
    for (const each of sent) await fails(each, "timeout");
    assert.deepEqual(counts.requests, Array(20).fill("data timeout"));
  });

  for (const [name, declared] of [
    ["100 MB", true],
    ["no end", false],
  ] as const) {
    it(`reads about 1 MiB of an answer with ${name}`, async () => {
      let written = 0;
      const server = await serving((_, response) => {
        response.writeHead(200, declared ? { "content-length": 100 * 1024 ** 2 } : {});
        const chunk = Buffer.alloc(64 * 1024, "x");
        const write = () => {
          while (!response.destroyed && written < 100 * 1024 ** 2) {
            written += chunk.length;
            if (!response.write(chunk)) return void response.once("drain", write);
          }
        };
        write();
      });
      const closed = new Promise((resolve) => {
        const { answer } = server;
        server.answer = (request, response) => {
          response.on("close", resolve);
          answer(request, response);
        };
      });
      await fails(clientOf(server).send(GET), "tooLarge");
      await closed;
      // The buffers of the sockets come on top.
      assert.ok(written < 16 * 1024 ** 2, `${written} bytes were sent`);
    });
  }

  it("is repeated if the server had closed the connection, unless it is a write", async () => {
    const server = await serving(ok);
    const client = clientOf(server);
    await client.send(GET);
    let breaks = 1;
    server.answer = (request, response) => (breaks-- > 0 ? response.destroy() : ok(request, response));
    assert.equal((await client.send(GET)).status, 200);
    breaks = 2;
    await fails(client.send(GET), "broken");
    breaks = 1;
    await fails(client.send({ ...GET, operation: "login", method: "POST", body: new SecretValue({}) }), "broken");
    assert.equal(server.received.length, 1 + 2 + 2 + 1);
  });

  it("follows a redirect to an allowed server, with the same path", async () => {
    const active = await serving(ok);
    const standby = await serving(redirecting(() => new URL("/v1/sys/raw/everything", active.url)));
    assert.equal((await clientOf(standby).send(GET)).status, 200);
    assert.equal(active.received[0]?.headers["x-vault-token"], token.reveal());
    assert.equal(active.received[0]?.path, "/v1/kv/data/x");
    const post: VaultRequest = {
      operation: "login",
      method: "POST",
      path: "auth/x/login",
      body: new SecretValue({ a: 1 }),
    };
    assert.equal((await clientOf(standby).send(post)).status, 200);
    assert.deepEqual([active.received[1]?.method, active.received[1]?.body], ["POST", '{"a":1}']);
  });

  it("never sends its token to a server that is not allowed, whatever redirects say", async () => {
    const stranger = await serving(ok);
    const standby = await serving(redirecting(() => stranger.url));
    const addresses = new VaultAddresses([`http://127.0.0.1:${standby.url.port}`]);
    await assert.rejects(clientOf(standby, {}, { addresses }).send(GET), (error) => {
      assert.ok(error instanceof Problem && error.reason === "ForbiddenAddress");
      const line = `http://127.0.0.1:${stranger.url.port}`;
      assert.match(error.message, /^the server redirects, but /);
      assert.ok(error.message.endsWith(`: - ${line}`), error.message);
      return true;
    });
    assert.deepEqual(stranger.received, []);
  });

  it("is not redirected from https to http, nor to a server with a certificate of another CA", async () => {
    const [certificate, other] = await Promise.all([makeCertificate(), makeCertificate()]);
    const plain = await serving(ok);
    const elsewhere = await serving(ok, other);
    let to = plain.url;
    const standby = await serving(
      redirecting(() => to),
      certificate,
    );
    const client = clientOf(standby, { ca: `${certificate.cert}` });
    await fails(client.send(GET), "redirects");
    to = elsewhere.url;
    await fails(client.send(GET), "tls");
    assert.equal(plain.connections, 0);
    assert.deepEqual(elsewhere.received, []);
  });

  it("follows at most two redirects, and none that would change a POST into a GET", async () => {
    const server = await serving(redirecting(() => server.url));
    await fails(clientOf(server).send(GET), "redirects");
    assert.equal(server.received.length, 3);
    server.answer = redirecting(() => server.url, 302);
    await fails(clientOf(server).send({ ...GET, operation: "login", method: "POST" }), "redirects");
    for (const location of ["http://", "ftp://127.0.0.1/", ""]) {
      server.answer = redirecting(() => location);
      await fails(clientOf(server).send(GET), "redirects");
    }
  });

  describe("over TLS", () => {
    let certificate: Awaited<ReturnType<typeof makeCertificate>>;
    before(async () => {
      certificate = await makeCertificate();
    });

    it("is sent only to a server whose certificate the CA signed", async () => {
      const server = await serving(ok, certificate);
      assert.equal((await clientOf(server, { ca: `${certificate.cert}` }).send(GET)).status, 200);
      server.received.splice(0);
      const distrusts: [settings: Partial<ConnectionSettings>, distrust: string][] = [
        [{}, "authority"],
        [{ ca: `${(await makeCertificate()).cert}` }, "authority"],
        [{ ca: `${certificate.cert}`, serverName: "vault.example.com" }, "name"],
      ];
      for (const [settings, distrust] of distrusts) {
        await assert.rejects(clientOf(server, settings).send(GET), { kind: "tls", distrust });
      }
      assert.deepEqual(server.received, []);
      assert.deepEqual(counts.requests, ["data tls"]);
    });

    it("is sent only there even if the environment says to trust any server", async () => {
      const variable = "NODE_TLS_REJECT_UNAUTHORIZED";
      const former = process.env[variable];
      process.env[variable] = "0";
      try {
        const server = await serving(ok, certificate);
        await assert.rejects(clientOf(server).send(GET), { kind: "tls", distrust: "authority" });
        assert.deepEqual(server.received, []);
      } finally {
        if (former === undefined) delete process.env[variable];
        else process.env[variable] = former;
      }
    });

    it("compares serverName with the name in the certificate", async () => {
      const { cert, key } = selfSigned(["vault.example.com"]);
      const server = await serving(ok, { cert: Buffer.from(cert), key: Buffer.from(key) });
      await assert.rejects(clientOf(server, { ca: cert }).send(GET), { kind: "tls", distrust: "name" });
      const client = clientOf(server, { ca: cert, serverName: "vault.example.com" });
      assert.equal((await client.send(GET)).status, 200);
    });

    it("fails if the server has no certificate", async () => {
      const server = await serving(ok);
      const url = new URL(`https://127.0.0.1:${server.url.port}`);
      await assert.rejects(clientOf({ url }).send(GET), { kind: "tls", distrust: "handshake" });
    });
  });

  describe("to a host name", () => {
    const url = (server: TestServer) => new URL(`http://vault.example.com:${server.url.port}`);
    const addresses = (...entries: string[]) => new VaultAddresses(entries);
    const forbidden = (sent: Promise<unknown>, says: RegExp) =>
      assert.rejects(sent, (error) => {
        assert.ok(error instanceof Problem && error.reason === "ForbiddenAddress");
        assert.match(error.message, says);
        return true;
      });

    it("is sent to the addresses that the connection itself resolves", async () => {
      const server = await serving(ok);
      const keys: string[] = [];
      const resolve = async (_: string, key: string) => {
        keys.push(key);
        return [{ address: "127.0.0.1", family: 4 }];
      };
      for (const entry of ["http://vault.example.com", "http://127.0.0.0/8"]) {
        const client = clientOf({ url: url(server) }, {}, { addresses: addresses(entry), resolve });
        assert.equal((await client.send(GET)).status, 200);
      }
      assert.deepEqual(keys, ["registry/vault", "registry/vault"]);
    });

    it("is never sent to a link-local address, even if the name changes its addresses later", async () => {
      const server = await serving(ok);
      const found = ["127.0.0.1"];
      const resolve = async () => found.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
      const client = clientOf({ url: url(server) }, {}, { addresses: addresses("http://vault.example.com"), resolve });
      await client.send(GET);
      for (const address of ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254"]) {
        found.splice(0, 1, address);
        await server.stop();
        await server.restart();
        await forbidden(client.send(GET), /vault\.example\.com .*link-local/);
      }
    });

    it("is not sent if one of its addresses is not allowed", async () => {
      const server = await serving(ok);
      const resolve = async () => ["127.0.0.1", "10.0.0.1"].map((address) => ({ address, family: 4 }));
      const services = { addresses: addresses("http://127.0.0.0/8"), resolve };
      await forbidden(clientOf({ url: url(server) }, {}, services).send(GET), /: - http:\/\/vault\.example\.com:\d+$/);
      assert.equal(server.connections, 0);
    });

    it("fails if the name has no address", async () => {
      const resolve = async () => {
        throw Object.assign(new Error("not found"), { code: "ENOTFOUND" });
      };
      const services = { addresses: addresses("http://vault.example.com"), resolve };
      await fails(clientOf({ url: new URL("http://vault.example.com") }, {}, services).send(GET), "name");
    });
  });

  it("fails as refused if no server listens", async () => {
    const server = await serving(ok);
    await server.stop();
    await fails(clientOf(server).send(GET), "refused");
    assert.deepEqual(counts.requests, ["data refused"]);
  });

  it("returns when the server wants the next request", async () => {
    const server = await serving((_, response) => json(response, {}, 429, { "retry-after": "7" }));
    assert.equal((await clientOf(server).send(GET)).retryAfterMs, 7_000);
  });
});
