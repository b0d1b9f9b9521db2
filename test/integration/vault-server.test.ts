/** Shows that the Vault server of the tests is real: its engines, logins and seal work as Vault's documentation says. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { startVault, type Vault } from "../control-plane/vault.ts";
import { registerSecret, secretText } from "../controller/leak-detector.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const AUDIENCE = "vault";
const KV_POLICY = 'path "kv/data/app/*" { capabilities = ["read"] }';

describe("the Vault server of the tests", () => {
  let vault: Vault;
  before(async () => {
    vault = await startVault();
    await vault.enableKv("kv");
    await vault.writePolicy("app", KV_POLICY);
  });
  after(() => vault?.stop());

  it("is initialised, unsealed and active, in the version of its go.mod", async () => {
    const { status, body } = await vault.ask("GET", "sys/health", undefined, "");
    const { initialized, sealed, standby, version } = body;
    assert.deepEqual(
      { status, initialized, sealed, standby, version },
      { status: 200, initialized: true, sealed: false, standby: false, version: "1.21.4" },
    );
  });

  it("writes KV version 2 at once after the engine is enabled, and numbers the versions", async () => {
    await vault.enableKv("fresh");
    const [first, second] = [secretText("first"), secretText("second")];
    assert.equal(await vault.putKv("fresh", "app/db", { password: first }), 1);
    assert.equal(await vault.putKv("fresh", "app/db", { password: second }), 2);
    const read = async (query = "") => (await vault.api("GET", `fresh/data/app/db${query}`)).data.data;
    assert.deepEqual(await read(), { password: second });
    assert.deepEqual(await read("?version=1"), { password: first });
  });

  it("has metadata of KV version 2, and answers 404 with the metadata of a deleted version", async () => {
    await vault.putKv("kv", "meta", { password: secretText("meta") });
    await vault.api("POST", "kv/metadata/meta", { custom_metadata: { owner: "team-a" } });
    const { data } = await vault.api("GET", "kv/metadata/meta");
    assert.deepEqual([data.current_version, data.custom_metadata], [1, { owner: "team-a" }]);
    assert.ok(Date.parse(data.updated_time) >= Date.parse(data.created_time));
    await vault.deleteKv("kv", "meta");
    const { status, body } = await vault.ask("GET", "kv/data/meta");
    assert.deepEqual([status, body.data.data], [404, null]);
    assert.notEqual(body.data.metadata.deletion_time, "");
  });

  it("has KV version 1", async () => {
    await vault.enableKv("kv1", 1);
    const password = secretText("one");
    await vault.putKv("kv1", "db", { password });
    assert.deepEqual((await vault.api("GET", "kv1/db")).data, { password });
    await vault.deleteKv("kv1", "db");
    assert.equal((await vault.ask("GET", "kv1/db")).status, 404);
  });

  it("gives a token what its policies allow, until it is revoked", async () => {
    await vault.putKv("kv", "app/db", { password: secretText("app") });
    await vault.putKv("kv", "other/db", { password: secretText("other") });
    const token = await vault.createToken(["app"]);
    const statusOf = async (path: string) => (await vault.ask("GET", path, undefined, token)).status;
    assert.equal(await statusOf("kv/data/app/db"), 200);
    assert.equal(await statusOf("kv/data/other/db"), 403);
    await vault.api("POST", "auth/token/revoke", { token });
    assert.equal(await statusOf("kv/data/app/db"), 403);
  });

  it("logs in by AppRole, with a secret ID of the role only", async () => {
    await vault.enableAppRole();
    await vault.putKv("kv", "app/db", { password: secretText("app") });
    const role = await vault.writeAppRole("app", { policies: ["app"] });
    const login = (secretID: string) =>
      vault.ask("POST", "auth/approle/login", { role_id: role.roleID, secret_id: secretID }, "");
    const { status, body } = await login(await role.newSecretID());
    assert.equal(status, 200);
    const token = registerSecret(body.auth.client_token);
    assert.equal((await vault.ask("GET", "kv/data/app/db", undefined, token)).status, 200);
    assert.equal((await login(secretText("unknown"))).status, 400);
  });

  it("writes each request to the audit log once it is answered, and no value of it", async () => {
    await vault.enableAudit();
    const password = secretText("audited");
    await vault.putKv("kv", "app/audited", { password });
    const token = await vault.createToken(["app"]);
    await vault.ask("GET", "kv/data/app/audited", undefined, token);
    const requests = await vault.requests();
    assert.deepEqual(
      requests.filter(({ path }) => path === "kv/data/app/audited"),
      [
        { operation: "create", path: "kv/data/app/audited", who: "root" },
        { operation: "read", path: "kv/data/app/audited", who: "token" },
      ],
    );
    assert.ok(!JSON.stringify(requests).includes(password));
  });

  it("is empty, with another root token, when it restarts on memory", async () => {
    await using own = await startVault();
    const { rootToken } = own;
    await own.enableKv("kv");
    await own.restart();
    assert.notEqual(own.rootToken, rootToken);
    assert.equal((await own.ask("GET", "sys/mounts/kv")).status, 400);
    assert.equal((await own.ask("GET", "sys/mounts", undefined, rootToken)).status, 403);
  });

  it("waits for its initialisation if it is started with that option", async () => {
    await using own = await startVault({ initialize: false });
    const { status, body } = await own.ask("GET", "sys/health");
    assert.deepEqual([status, body.initialized, body.sealed], [501, false, true]);
  });
});

describe("Kubernetes auth of the Vault server of the tests", () => {
  let vault: Vault;
  let team: TestNamespace;
  before(async () => {
    vault = await startVault();
    team = await createNamespace({ rules: [], controller: false });
    await team.createAccount("other");
    await vault.enableKv("kv");
    await vault.writePolicy("app", KV_POLICY);
    await vault.putKv("kv", "app/db", { password: secretText("app") });
    await vault.enableKubernetesAuth(controlPlane());
    const { namespace } = team;
    const role = { accounts: ["inlay"], namespaces: [namespace], policies: ["app"] };
    await vault.writeKubernetesRole("app", { ...role, audience: AUDIENCE });
    await vault.writeKubernetesRole("any-audience", role);
  });
  after(() => vault?.stop());

  const tokenOf = async (account: string, audience: string): Promise<string> => {
    const { status } = await team.api.create(`${team.path("v1", "serviceaccounts")}/${account}/token`, {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { audiences: [audience], expirationSeconds: 600 },
    });
    return registerSecret(status.token);
  };
  const login = (role: string, jwt: string) => vault.ask("POST", "auth/kubernetes/login", { role, jwt }, "");

  it("logs a ServiceAccount in, by the review of the real API server", async () => {
    const { status, body } = await login("app", await tokenOf("inlay", AUDIENCE));
    assert.equal(status, 200);
    assert.equal(body.auth.metadata.service_account_namespace, team.namespace);
    const token = registerSecret(body.auth.client_token);
    assert.equal((await vault.ask("GET", "kv/data/app/db", undefined, token)).status, 200);
  });

  it("refuses a token for another audience, unless the role has no audience", async () => {
    const jwt = await tokenOf("inlay", "https://elsewhere.example");
    assert.equal((await login("app", jwt)).status, 403);
    // This is why samples set the audience.
    assert.equal((await login("any-audience", jwt)).status, 200);
  });

  it("refuses another account, and a token that the API server did not sign", async () => {
    assert.equal((await login("app", await tokenOf("other", AUDIENCE))).status, 403);
    const [head, claims, signature = ""] = (await tokenOf("inlay", AUDIENCE)).split(".");
    const forged = [head, claims, Buffer.from(signature, "base64url").reverse().toString("base64url")].join(".");
    assert.equal((await login("app", forged)).status, 403);
  });

  it("refuses the token of an account that has been deleted since", async () => {
    await team.createAccount("short-lived");
    const role = { accounts: ["short-lived"], namespaces: [team.namespace], policies: ["app"], audience: AUDIENCE };
    await vault.writeKubernetesRole("short-lived", role);
    // The API server caches the review of a token for some seconds, so this token is reviewed only after the deletion.
    const jwt = await tokenOf("short-lived", AUDIENCE);
    await team.api.delete(`${team.path("v1", "serviceaccounts")}/short-lived`);
    assert.equal((await login("short-lived", jwt)).status, 403);
  });
});

describe("a Vault server with its data in files, and TLS", () => {
  let vault: Vault;
  before(async () => {
    vault = await startVault({ tls: true, storage: "file" });
    await vault.enableKv("kv");
  });
  after(() => vault?.stop());

  it("answers 503 while it is sealed, and has its data when it is unsealed", async () => {
    await vault.putKv("kv", "db", { password: secretText("sealed") });
    await vault.seal();
    assert.deepEqual(
      [(await vault.ask("GET", "kv/data/db")).status, (await vault.ask("GET", "sys/health")).status],
      [503, 503],
    );
    await vault.unseal();
    assert.equal((await vault.ask("GET", "kv/data/db")).status, 200);
  });

  it("is gone when it is killed, and returns at its address, sealed, with its data and tokens", async () => {
    const password = secretText("kept");
    await vault.putKv("kv", "kept", { password });
    await vault.writePolicy("kept", 'path "kv/data/kept" { capabilities = ["read"] }');
    const token = await vault.createToken(["kept"]);
    await vault.kill();
    await assert.rejects(vault.ask("GET", "sys/health"), /ECONNREFUSED/);
    await vault.restart();
    assert.equal((await vault.ask("GET", "sys/health")).body.sealed, true);
    await vault.unseal();
    const { data } = await vault.api("GET", "kv/data/kept", undefined, token);
    assert.deepEqual(data.data, { password });
    assert.equal(await vault.putKv("kv", "kept", { password }), 2);
  });

  it("has a certificate for its names, and another one after a renewal", async () => {
    assert.match(vault.address, /^https:\/\/localhost:/);
    const { ca } = vault;
    assert.equal((await vault.ask("GET", "sys/health")).status, 200);
    const renewed = await vault.renewCertificate();
    assert.notEqual(renewed, ca);
    assert.equal((await vault.ask("GET", "sys/health")).status, 200);
    // A client that trusts only the earlier certificate does not reach it.
    await assert.rejects(vault.ask("GET", "sys/health", undefined, "", ca), /self-signed certificate/);
  });
});
