/** Shows the status of VaultConnections on a real API server, and how Inlay logs in, with a server that answers like Vault. */
import assert from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn, registerSecret, secretText } from "../controller/leak-detector.ts";
import { paste } from "../controller/paste.ts";
import { stopSharedController } from "../controller/shared.ts";
import { createNamespace, harborTarget, type TestNamespace } from "../controller/test-namespace.ts";
import { type Answer, denied, json, routes, startServer, type TestServer } from "../unit/vault/server.ts";

const VERSION = "1.21.4";
const HEALTH = "GET /v1/sys/health";
const LOGINS = ["POST /v1/auth/approle/login", "POST /v1/auth/kubernetes/login"];
const REVOKE = "POST /v1/auth/token/revoke-self";

const S3 = { mount: "kv", path: "registry/s3" };

const appRole = { roleID: "harbor", secretID: { secret: { name: "login", key: "secretID" } } };

describe("a VaultConnection", function () {
  this.timeout("2m");
  let server: TestServer;
  let controller: ControllerProcess;
  let team: TestNamespace;
  let isSealed = false;
  /** The tokens that the server has issued. */
  const tokens: string[] = [];

  const login: Answer = (_, response) => {
    const token = secretText("token");
    tokens.push(token);
    json(response, { auth: { client_token: token, lease_duration: 3600, renewable: true, token_type: "service" } });
  };
  /** The data of the server at kv/registry/s3, and its version. */
  let value = secretText("access");
  let version = 1;
  const data: Answer = (_, response) => {
    const metadata = { version, created_time: "2026-01-01T00:00:00Z", deletion_time: "", destroyed: false };
    json(response, { data: { data: { accessKeyID: value }, metadata: { ...metadata, custom_metadata: null } } });
  };
  const health: Answer = (_, response) =>
    json(response, { initialized: true, sealed: isSealed, standby: false, version: VERSION }, isSealed ? 503 : 200);

  before(async () => {
    await stopSharedController();
    const done: Answer = (_, response) => {
      response.writeHead(204).end();
    };
    const lookup: Answer = (_, response) => json(response, { data: { ttl: 0, renewable: false } });
    server = await startServer(
      routes({
        [HEALTH]: health,
        ...Object.fromEntries(LOGINS.map((each) => [each, login])),
        "GET /v1/auth/token/lookup-self": lookup,
        [REVOKE]: done,
        "GET /v1/kv/data/registry/s3": data,
        "GET /v1/kv/metadata/registry/s3": (_, response) => denied(response),
      }),
    );
    const file = join(await mkdtemp(join(controlPlane().folder, "config-")), "config.yaml");
    const type = "apiVersion: config.inlay.dev/v1alpha1\nkind: ControllerConfiguration\n";
    await writeFile(file, `${type}vault: { addresses: ["http://127.0.0.1:${server.url.port}"] }\n`);
    controller = new ControllerProcess(controlPlane(), "--config", file);
    await controller.start();
  });
  beforeEach(async () => {
    isSealed = false;
    team = await createNamespace({ controller: false });
  });
  after(async () => {
    await controller.stop();
    await server.stop();
  });

  const path = (name = "vault") => `${team.path("inlay.dev/v1alpha1", "vaultconnections")}/${name}`;
  const connect = (spec: object = {}, name = "vault") =>
    team.api.create(team.path("inlay.dev/v1alpha1", "vaultconnections"), {
      apiVersion: "inlay.dev/v1alpha1",
      kind: "VaultConnection",
      metadata: { name },
      spec: { address: server.url.origin, ...spec },
    });
  const until = (reason: string, name?: string): Promise<AnyObject> =>
    eventually(async () => {
      const connection = await team.api.get(path(name));
      const said = JSON.stringify(connection.status);
      assert.deepEqual(foundIn(said), []);
      const [ready] = connection.status?.conditions ?? [];
      assert.equal(ready?.reason, reason, said);
      assert.equal(ready.observedGeneration, connection.metadata.generation, said);
      return connection;
    });
  const messageOf = ({ status }: AnyObject): string => status.conditions[0].message;
  const received = (...requests: string[]) =>
    server.received.filter(({ method, path: at }) => requests.includes(`${method} ${at}`));
  const revoked = () => received(REVOKE).map(({ headers }) => headers["x-vault-token"]);

  it("reports that its server is ready, and its version, also in the columns of kubectl", async () => {
    await connect();
    const { status } = await until("Ready");
    assert.deepEqual([status.version, status.conditions[0].status], [VERSION, "True"]);
    const { stdout } = await controlPlane().kubectl("get", "vc", `--namespace=${team.namespace}`);
    const [head, row] = stdout.split("\n").map((line) => line.trim().split(/ +/));
    assert.deepEqual(head?.slice(0, 5), ["NAME", "ADDRESS", "READY", "REASON", "VERSION"]);
    assert.deepEqual(row?.slice(0, 5), ["vault", server.url.origin, "True", "Ready", VERSION]);
  });

  it("to a server that is not listed is ForbiddenAddress, and the message names the line to add", async () => {
    const before = server.connections;
    await connect({ address: `https://127.0.0.1:${server.url.port}` });
    const message = messageOf(await until("ForbiddenAddress"));
    assert.match(message, new RegExp(`vault\\.addresses.*- 127\\.0\\.0\\.1:${server.url.port}`, "s"));
    const events = await eventually(async () => {
      const all = await team.events("vault");
      assert.notEqual(all.length, 0);
      return all;
    });
    assert.deepEqual(
      events.map(({ type, reason }) => [type, reason]),
      [["Warning", "ForbiddenAddress"]],
    );
    assert.equal(server.connections, before);
  });

  it("waits for a missing Secret, and logs in again when its value changes, but not for another key", async () => {
    await connect({ auth: { appRole }, paths: ["kv/*"] });
    assert.match(messageOf(await until("ConnectionNotReady")), /no Secret team-\d+\/login\b/);
    const before = tokens.length;
    await team.secret("login", { other: secretText("other") });
    await eventually(async () =>
      assert.match(messageOf(await until("ConnectionNotReady")), /Secret team-\d+\/login .*key secretID\b/),
    );
    const sentBy = async (change: Record<string, string>) => {
      const logins = received(...LOGINS).length;
      await team.secret("login", change);
      await eventually(() => assert.equal(received(...LOGINS).length, logins + 1));
      await until("Ready");
      return JSON.parse(received(...LOGINS).at(-1)?.body ?? "").secret_id;
    };
    const [one, other] = [secretText("secret-id"), secretText("secret-id")];
    assert.equal(await sentBy({ secretID: one }), one);
    const token = tokens.at(-1);
    await team.secret("login", { other: secretText("other") });
    assert.equal(await sentBy({ secretID: other }), other);
    await eventually(() => assert.deepEqual(revoked().slice(-1), [token]));
    assert.equal(tokens.length, before + 2, "the other key led to a login");
  });

  it("whose token is in a ConfigMap warns that other users can read it", async () => {
    const token = secretText("token");
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "login" }, data: { token } });
    await connect({ auth: { token: { configMap: { name: "login", key: "token" } } }, paths: ["kv/*"] });
    const connection = await until("TokenReadable");
    assert.equal(connection.status.conditions[0].status, "True");
    assert.match(messageOf(connection), /read ConfigMaps/);
    await eventually(async () =>
      assert.deepEqual(
        (await team.events("vault")).map(({ type, reason }) => [type, reason]),
        [["Warning", "TokenReadable"]],
      ),
    );
    // Deletes the ConfigMap, so that no readable token remains.
    await team.api.delete(`${team.path("v1", "configmaps")}/login`);
    await until("ConnectionNotReady");
  });

  it("is checked at once when its annotation has a new text", async () => {
    await connect();
    await until("Ready");
    const before = received(HEALTH).length;
    await team.api.merge(path(), { metadata: { annotations: { "inlay.dev/refresh": "1" } } });
    await eventually(() => assert.ok(received(HEALTH).length > before));
    const handled = async () => (await team.api.get(path())).status.lastHandledRefresh;
    await eventually(async () => assert.equal(await handled(), "1"));
    isSealed = true;
    await team.api.merge(path(), { metadata: { annotations: { "inlay.dev/refresh": "2" } } });
    const { status } = await until("VaultSealed");
    assert.equal(await handled(), "2");
    assert.equal(status.version, VERSION);
    assert.equal(await controller.page("/readyz"), "ok\n");
    assert.ok((await controller.metric("inlay_vault_connections", 'state="not_ready"')) > 0);
    isSealed = false;
    await until("Ready");
  });

  it("logs in with a token of its account, which needs that permission, and revokes the login at the end", async () => {
    await connect({ auth: { kubernetes: { role: "inlay", as: "Connection" } }, paths: ["kv/*"] });
    const command = / with: (kubectl .*)$/.exec(messageOf(await until("Forbidden")))?.[1];
    assert.ok(command);
    await paste(command);
    await until("Ready");
    const { role, jwt } = JSON.parse(received(...LOGINS).at(-1)?.body ?? "");
    registerSecret(jwt);
    const { aud, exp, iat, sub } = JSON.parse(Buffer.from(jwt.split(".")[1], "base64url").toString());
    assert.deepEqual(
      { role, aud, seconds: exp - iat, sub },
      { role: "inlay", aud: ["vault"], seconds: 600, sub: `system:serviceaccount:${team.namespace}:inlay` },
    );
    const token = tokens.at(-1);
    await team.api.delete(path());
    await eventually(() => assert.deepEqual(revoked().slice(-1), [token]));
    assert.ok((await controller.metric("inlay_vault_logins_total", 'outcome="success"')) > 0);
    assert.ok((await controller.metric("inlay_vault_requests_total", 'operation="revoke"')) > 0);
  });

  it("whose audience no policy lists is Rejected, and the message names the policy to change", async () => {
    await paste(
      `kubectl create rolebinding inlay-vault-login -n ${team.namespace} --clusterrole=inlay-vault-login --serviceaccount=${team.namespace}:inlay`,
    );
    const kubernetes = { role: "inlay", as: "Connection", audiences: ["https://kubernetes.default.svc"] };
    await connect({ auth: { kubernetes }, paths: ["kv/*"] });
    assert.match(messageOf(await until("Rejected")), /ValidatingAdmissionPolicy inlay-account-tokens/);
  });

  it("requeues its bindings when it is created, fails, recovers and is deleted", async () => {
    await team.harbor();
    const from = { source: "s3", key: "accessKeyID" };
    await team.bind("harbor", {
      sources: [{ name: "s3", vault: { connection: { name: "vault" }, refresh: "1h", data: S3 } }],
      targets: [harborTarget({ accesskey: { from } })],
    });
    await team.until("harbor", "ConnectionNotFound");
    await connect({ auth: { appRole }, paths: ["kv/*"] });
    await team.until("harbor", "ConnectionNotReady");
    await team.secret("login", { secretID: secretText("secret-id") });
    await team.until("harbor", "Synced");
    assert.equal((await team.s3()).accesskey, value);
    value = secretText("access");
    version++;
    await team.api.merge(path(), { metadata: { annotations: { "inlay.dev/refresh": "1" } } });
    await eventually(async () => assert.equal((await team.s3()).accesskey, value));
    await team.api.merge(path(), { spec: { paths: ["other/*"] } });
    await team.until("harbor", "ForbiddenPath");
    await team.api.delete(path());
    await team.until("harbor", "ConnectionNotFound");
    assert.equal((await team.s3()).accesskey, value);
  });

  it("is unchanged after a restart, which writes nothing and revokes the earlier logins", async () => {
    await team.secret("login", { secretID: secretText("secret-id") });
    await connect({ auth: { appRole }, paths: ["kv/*"] });
    const { metadata } = await until("Ready");
    const token = tokens.at(-1);
    await controller.stop();
    assert.deepEqual(revoked().slice(-1), [token]);
    const before = tokens.length;
    await controller.start();
    await eventually(() => assert.ok(tokens.length > before));
    await controller.idle();
    assert.equal((await team.api.get(path())).metadata.resourceVersion, metadata.resourceVersion);
  });

  it("delays the stop of the controller for seconds at most when its server does not answer", async () => {
    await team.secret("login", { secretID: secretText("secret-id") });
    await connect({ auth: { appRole }, paths: ["kv/*"] });
    await until("Ready");
    const before = received(REVOKE).length;
    server.answer = () => {};
    const began = performance.now();
    assert.equal(await controller.stop(), 0);
    assert.ok(received(REVOKE).length > before);
    const took = performance.now() - began;
    assert.ok(took < 10_000, `${took} ms`);
  });
});
