/** The result of a check of a connection, and the end of a connection. */
import assert from "node:assert/strict";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { Connection, type ConnectionSettings } from "../../../src/vault/connection.ts";
import { foundIn, secretText } from "../../controller/leak-detector.ts";
import {
  type Answer,
  denied,
  json,
  KUBERNETES,
  login,
  READER,
  routes,
  servicesFor,
  settingsFor,
  startServer,
  type TestServer,
} from "./server.ts";

const HEALTH = "GET /v1/sys/health";
const LOGIN = "POST /v1/auth/kubernetes/login";
const REVOKE = "POST /v1/auth/token/revoke-self";
const PLACE = { mount: "kv", path: "x", kv: 2 } as const;
const AS_CONNECTION = { ...KUBERNETES, role: "inlay", as: "system:serviceaccount:registry:inlay" };

describe("a connection to Vault", () => {
  let server: TestServer;
  const connections: Connection[] = [];
  const answers: Record<string, Answer> = {};
  const healthy: Answer = (_, response) =>
    json(response, { initialized: true, sealed: false, standby: false, version: "1.21.4" });

  beforeEach(async () => {
    for (const key of Object.keys(answers)) delete answers[key];
    answers[HEALTH] = healthy;
    answers[LOGIN] = login(secretText("token"));
    answers[REVOKE] = (_, response) => response.writeHead(204).end();
    server = await startServer((request, response) => routes(answers)(request, response));
  });
  afterEach(async () => {
    await server.stop();
    await Promise.all(connections.splice(0).map((connection) => connection.close()));
  });
  function connect(settings: Partial<ConnectionSettings> = {}): Connection {
    const connection = new Connection(settingsFor(server.url, settings), servicesFor());
    connections.push(connection);
    return connection;
  }
  const timesOf = (request: string) =>
    server.received.filter(({ method, path }) => `${method} ${path}` === request).length;

  it("is checked by health, and by a login if bindings don't log in themselves", async () => {
    assert.deepEqual(await connect().check(), { version: "1.21.4" });
    assert.equal(timesOf(LOGIN), 0);
    const connection = connect({ auth: AS_CONNECTION });
    for (let turn = 0; turn < 3; turn++) assert.deepEqual(await connection.check(), { version: "1.21.4" });
    assert.equal(timesOf(LOGIN), 1);
  });

  it("is checked without a login if each namespace logs in with its own role", async () => {
    for (const [role, logins] of [
      ["inlay-{namespace}", 0],
      ["inlay", 1],
    ] as const) {
      assert.deepEqual(await connect({ auth: { ...AS_CONNECTION, role } }).check(), { version: "1.21.4" });
      assert.equal(timesOf(LOGIN), logins);
    }
  });

  it("retries a failed login at once on request", async () => {
    const working = answers[LOGIN] as Answer;
    answers[LOGIN] = (_, response) => denied(response);
    const connection = connect();
    const reads = () => connection.data(READER, PLACE, undefined);
    await assert.rejects(reads(), { reason: "VaultDenied" });
    answers[LOGIN] = working;
    await assert.rejects(reads(), { reason: "VaultDenied" });
    connection.retryLogins();
    assert.equal((await reads()).content, undefined);
    assert.equal(timesOf(LOGIN), 2);
  });

  it("reports a failing login at each check, until it succeeds", async () => {
    answers[LOGIN] = (_, response) => denied(response);
    const connection = connect({ auth: AS_CONNECTION });
    for (let turn = 0; turn < 2; turn++) {
      const { version, problem } = await connection.check();
      assert.deepEqual([version, problem?.reason], ["1.21.4", "VaultDenied"]);
    }
    assert.equal(timesOf(LOGIN), 1);
  });

  const states: [
    what: string,
    fields: Record<string, unknown>,
    status: number,
    reason: string | undefined,
    says: RegExp,
  ][] = [
    ["sealed", { sealed: true }, 503, "VaultSealed", /is sealed; unseal it$/],
    ["not initialized", { initialized: false, sealed: true }, 501, "VaultUnavailable", /is not initialized/],
    ["a DR secondary", {}, 472, "VaultUnavailable", /is a disaster recovery secondary/],
    ["a standby without an active server", { standby: true }, 474, "VaultUnavailable", /lost its active server; check/],
    [
      "removed from its cluster",
      { sealed: true },
      530,
      "VaultUnavailable",
      /was removed from its cluster; set address/,
    ],
    ["a standby", { standby: true }, 429, undefined, /^$/],
  ];
  for (const [what, fields, status, reason, says] of states) {
    it(`to a server that is ${what} is ${reason ?? "ready"}`, async () => {
      answers[HEALTH] = (_, response) =>
        json(response, { initialized: true, sealed: false, version: "1.21.4", ...fields }, status);
      const { version, problem } = await connect().check();
      assert.deepEqual([version, problem?.reason], ["1.21.4", reason]);
      assert.match(problem?.message ?? "", says);
    });
  }

  it("to an unreachable server is unavailable", async () => {
    await server.stop();
    const { problem } = await connect().check();
    assert.equal(problem?.reason, "VaultUnavailable");
    assert.match(problem.message, /^health of 127\.0\.0\.1:\d+: 127\.0\.0\.1:\d+ refuses connections; /);
  });

  it("without a login reads only health", async () => {
    const connection = connect({ auth: undefined });
    assert.deepEqual(await connection.check(), { version: "1.21.4" });
    assert.equal((await connection.health(undefined, undefined)).content?.data.size, 6);
    await assert.rejects(connection.data(READER, PLACE, undefined), {
      reason: "ConnectionNotReady",
      message: /^kv\/x: the VaultConnection registry\/vault has no login, .+; set auth$/,
    });
    assert.equal(connection.loginOf(READER), "");
    await connection.close();
  });

  it("revokes its tokens when it ends, and then reads nothing more", async () => {
    const connection = connect();
    await connection.data(READER, PLACE, undefined);
    await connection.close();
    assert.equal(timesOf(REVOKE), 1);
    await assert.rejects(connection.data(READER, PLACE, undefined), { reason: "ConnectionNotReady" });
  });

  it("ends within two seconds of a server that does not answer", async () => {
    const connection = connect({ timeoutMs: 60_000 });
    await connection.data(READER, PLACE, undefined);
    answers[REVOKE] = () => {};
    const startedAt = performance.now();
    await connection.close();
    const took = performance.now() - startedAt;
    assert.ok(took > 1_900 && took < 5_000, `${took} ms`);
  });

  it("does not reveal its secrets when it is printed", async () => {
    const connection = connect({ auth: { kind: "token", token: new SecretValue(secretText("token")) } });
    answers["GET /v1/auth/token/lookup-self"] = (_, response) => json(response, { data: { ttl: 60, renewable: true } });
    await connection.data(READER, PLACE, undefined);
    const { inspect } = await import("node:util");
    assert.deepEqual(foundIn(inspect(connection, { depth: 20, showHidden: true })), []);
  });
});
