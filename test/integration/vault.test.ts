/** Shows that values of a real Vault reach Secrets, fields and workloads within the permissions of each binding's login. */
import assert from "node:assert/strict";
import { migrate } from "../../src/migrate/migration.ts";
import { VSO } from "../../src/migrate/vso.ts";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespace, harborTarget } from "../controller/test-namespace.ts";
import { CONNECTION, MOUNT, VaultSetUp, type VaultTeam } from "../controller/vault-team.ts";

const field = (path: string, from: object) => harborTarget({ [path]: { from: { source: "s3", ...from } } });
const secretTarget = (fields: object[]) => ({
  apiVersion: "v1",
  kind: "Secret",
  name: "copy",
  create: { manifest: {} },
  fields,
});

describe("a source from Vault", function () {
  this.timeout("2m");
  let setUp: VaultSetUp;
  let vault: VaultSetUp["vault"];

  before(async function () {
    this.timeout("20m");
    setUp = await VaultSetUp.start();
    vault = setUp.vault;
    await vault.enableAudit();
  });
  after(() => setUp.stop());

  /** The requests to Vault below a folder, without those of the test. */
  const requestsOf = async (folder: string, from = 0) =>
    (await vault.requests())
      .slice(from)
      .filter(({ path, who }) => who !== "root" && path.startsWith(`${MOUNT}/`) && path.includes(`/${folder}`));
  const copyOf = async (team: VaultTeam): Promise<Record<string, string>> => {
    const { data } = await team.team.api.get(`${team.team.path("v1", "secrets")}/copy`);
    return Object.fromEntries(
      Object.entries<string>(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]),
    );
  };

  it("reaches a Secret, a field and the workloads that depend on it, once for each change", async () => {
    const team = await setUp.createTeam();
    const first = await team.rotate();
    await team.workloads.deploy({ web: { env: { copy: ["key"] } }, other: {} });
    await team.bind("harbor-s3", team.source(), {
      targets: [
        secretTarget([{ path: "data.key", from: { source: "s3", key: "accessKey" } }]),
        field("accesskey", { key: "accessKey" }),
      ],
      rollout: { consumersOfTargets: true },
    });
    await team.holds(first);
    await team.workloads.rolledOut("harbor-s3", 0);
    for (let rotation = 1; rotation <= 2; rotation++) {
      const { metadata: before } = await team.team.api.get(team.team.harborPath());
      const next = await team.rotate();
      await team.holds(next);
      await team.workloads.rolledOut("harbor-s3", rotation);
      assert.deepEqual(await copyOf(team), { key: next });
      assert.deepEqual(await team.workloads.restarts(), { web: rotation, other: 0 });
      const { metadata } = await team.team.api.get(team.team.harborPath());
      assert.equal(metadata.generation, before.generation + 1);
    }
    await team.untilConnection("Ready");
  });

  it("reaches the Secret of a VaultStaticSecret that inlay migrate has converted, and restarts its Deployment", async () => {
    const team = await setUp.createTeam();
    const first = await team.rotate();
    const { namespace } = team;
    const objects = [
      { kind: "VaultConnection", metadata: { name: "server", namespace }, spec: { address: vault.address } },
      {
        kind: "VaultAuth",
        metadata: { name: "static", namespace },
        spec: {
          vaultConnectionRef: "server",
          method: "kubernetes",
          mount: "kubernetes",
          kubernetes: { role: `inlay-${namespace}`, serviceAccount: "inlay", audiences: ["vault"] },
        },
      },
      {
        kind: "VaultStaticSecret",
        metadata: { name: "s3", namespace },
        spec: {
          vaultAuthRef: "static",
          type: "kv-v2",
          mount: MOUNT,
          path: team.in("s3"),
          refreshAfter: "1s",
          destination: { name: "copy", create: true, overwrite: true, transformation: { excludeRaw: true } },
          rolloutRestartTargets: [{ kind: "Deployment", name: "web" }],
        },
      },
    ].map((object) => JSON.stringify({ apiVersion: "secrets.hashicorp.com/v1beta1", ...object }));
    const { converted, lost } = migrate(VSO, [{ name: "vso.yaml", text: objects.join("\n---\n") }], namespace);
    assert.deepEqual(lost, []);
    await team.workloads.deploy({ web: {} });
    for (const { object } of converted) {
      const plural = object["kind"] === "SecretBinding" ? "secretbindings" : "vaultconnections";
      await team.team.api.create(team.team.path("inlay.dev/v1alpha1", plural), object);
    }
    await eventually(async () => assert.deepEqual(await copyOf(team), { accessKey: first }));
    await team.workloads.rolledOut("s3", 0);
    const next = await team.rotate();
    await team.workloads.rolledOut("s3", 1);
    assert.deepEqual(await copyOf(team), { accessKey: next });
    assert.deepEqual(await team.workloads.restarts(), { web: 1 });
  });

  it("is used like a Secret: keys, values inside of a key, all data, templates, and JSON for values that are not text", async () => {
    const team = await setUp.createTeam();
    const [user, password] = [secretText("user"), secretText("password")];
    await team.put("s3", { user, nested: { password, big: 1 }, list: [true, null], empty: "" });
    const from = (path: string, { as, ...more }: { as?: string; key: string; pointer?: string }) => ({
      path: `data.${path}`,
      from: { source: "s3", ...more },
      ...(as !== undefined && { as }),
    });
    await team.bind("copy", team.source(), {
      targets: [
        secretTarget([
          from("user", { key: "user" }),
          from("password", { key: "nested", pointer: "/password", as: "bytes" }),
          from("list", { key: "list" }),
          { path: "data.url", template: "s3://{{s3.user}}@host" },
        ]),
        { ...secretTarget([{ path: "data", from: { source: "s3", exclude: ["nested"] } }]), name: "whole" },
      ],
    });
    await team.team.until("copy", "Synced");
    assert.deepEqual(await copyOf(team), { user, password, list: "[true,null]", url: `s3://${user}@host` });
    const { data } = await team.team.api.get(`${team.team.path("v1", "secrets")}/whole`);
    assert.deepEqual(Object.keys(data).sort(), ["empty", "list", "user"]);
  });

  it("is read again only where its version changed, and once for all bindings that need it", async () => {
    const team = await setUp.createTeam();
    const first = await team.rotate();
    const from = (await vault.requests()).length;
    await Promise.all([
      team.bind("one"),
      team.bind("two", team.source(), {
        targets: [secretTarget([{ path: "data.key", from: { source: "s3", key: "accessKey" } }])],
      }),
    ]);
    await team.holds(first);
    const reads = async (part: string) =>
      (await requestsOf(team.namespace, from)).filter(({ path }) => path.startsWith(`${MOUNT}/${part}/`)).length;
    await eventually(async () => assert.ok((await reads("metadata")) >= 3));
    assert.equal(await reads("data"), 1);
    await team.holds(await team.rotate());
    await eventually(async () => assert.ok((await reads("metadata")) >= 5));
    assert.equal(await reads("data"), 2);
  });

  it("is read at once when the annotation of the binding or of its connection has a new text", async () => {
    const team = await setUp.createTeam();
    const first = await team.rotate();
    await team.bind("harbor-s3", team.source(team.data("s3"), {}), {
      sources: [{ name: "s3", vault: { connection: { name: CONNECTION }, refresh: "24h", ...team.data("s3") } }],
    });
    await team.holds(first);
    const annotate = (path: string, text: string) =>
      team.team.api.merge(path, { metadata: { annotations: { "inlay.dev/refresh": text } } });
    const second = await team.rotate();
    await annotate(team.team.bindingPath("harbor-s3"), "1");
    await team.holds(second);
    const third = await team.rotate();
    await annotate(team.connectionPath(), "1");
    await team.holds(third);
  });

  it("is missing where it is deleted, destroyed or does not exist, and onMissing applies", async () => {
    const team = await setUp.createTeam();
    const first = await team.rotate();
    await team.bind("harbor-s3");
    await team.holds(first);
    await vault.deleteKv(MOUNT, team.in("s3"));
    const { status } = await team.team.until("harbor-s3", "SourceNotFound");
    assert.match(status.conditions[0].message, new RegExp(`data ${MOUNT}/${team.in("s3")}`));
    assert.equal((await team.team.s3()).accesskey, first);
    await team.team.rebind("harbor-s3", { sources: [team.source(team.data("s3"), { onMissing: "Remove" })] });
    await team.holds(undefined);
    await vault.api("POST", `${MOUNT}/undelete/${team.in("s3")}`, { versions: [1] });
    await team.holds(first);
    await vault.api("PUT", `${MOUNT}/destroy/${team.in("s3")}`, { versions: [1] });
    await team.holds(undefined);
    await vault.api("DELETE", `${MOUNT}/metadata/${team.in("s3")}`);
    // Versions begin at 1 again.
    await team.holds(await team.rotate());
  });

  it("stays at the version that the binding names", async () => {
    const team = await setUp.createTeam();
    const first = await team.rotate();
    await team.rotate();
    await team.bind("harbor-s3", team.source(team.data("s3", { version: 1 })));
    await team.holds(first);
    await team.team.rebind("harbor-s3", { sources: [team.source(team.data("s3", { version: 2 }))] });
    await eventually(async () => assert.notEqual((await team.team.s3()).accesskey, first));
  });

  it("is also read from KV version 1", async () => {
    const team = await setUp.createTeam({ paths: ["v1-{namespace}/*"] });
    const mount = `v1-${team.namespace}`;
    await vault.enableKv(mount, 1);
    await setUp.allow(team.namespace, `path "${mount}/*" { capabilities = ["read"] }`);
    const rotate = async () => {
      const accessKey = secretText("access");
      await vault.putKv(mount, "s3", { accessKey });
      return accessKey;
    };
    const first = await rotate();
    await team.bind("harbor-s3", team.source({ data: { mount, path: "s3", kv: 1 } }));
    await team.holds(first);
    await team.holds(await rotate());
    await vault.deleteKv(mount, "s3");
    await team.team.until("harbor-s3", "SourceNotFound");
  });

  it("gives metadata to a login that may not read data, and restarts the named workloads", async () => {
    const team = await setUp.createTeam();
    await setUp.allow(team.namespace, `path "+/metadata/*" { capabilities = ["read"] }`);
    await team.rotate();
    await vault.api("POST", `${MOUNT}/metadata/${team.in("s3")}`, { custom_metadata: { owner: "storage" } });
    await team.workloads.deploy({ web: {} });
    const source = team.source({ metadata: { mount: MOUNT, path: team.in("s3") } });
    const from = (await vault.requests()).length;
    await team.bind("restarts", source, {
      targets: [
        field("accesskey", { key: "current_version" }),
        field("bucket", { key: "custom_metadata", pointer: "/owner" }),
      ].slice(0, 1),
      rollout: { targets: [{ kind: "Deployment", name: "web" }] },
    });
    await team.holds("1");
    await team.workloads.rolledOut("restarts", 0);
    await team.rotate();
    await team.holds("2");
    await team.workloads.rolledOut("restarts", 1);
    assert.deepEqual(await team.workloads.restarts(), { web: 1 });
    const asked = await requestsOf(team.namespace, from);
    assert.deepEqual(
      asked.filter(({ path }) => path.startsWith(`${MOUNT}/data/`)),
      [],
    );
  });

  it("keeps what was written when Vault denies the login, and recovers when Vault permits it", async () => {
    const team = await setUp.createTeam();
    const first = await team.rotate();
    await team.bind("harbor-s3");
    await team.holds(first);
    await setUp.allow(team.namespace, `path "other/*" { capabilities = ["read"] }`);
    const { status } = await team.team.until("harbor-s3", "VaultDenied");
    assert.match(status.conditions[0].message, new RegExp(`${MOUNT}/${team.in("s3")}`));
    assert.equal((await team.team.s3()).accesskey, first);
    const next = await team.rotate();
    await setUp.allow(team.namespace);
    await team.holds(next);
  });

  it("is requested only within the paths of its connection, and not for another namespace", async () => {
    const [team, other] = [await setUp.createTeam(), await setUp.createTeam()];
    await other.rotate();
    // Vault itself would permit this path.
    await setUp.allow(team.namespace, `path "${MOUNT}/*" { capabilities = ["read"] }`);
    const from = (await vault.requests()).length;
    await team.bind("stranger", team.source(other.data("s3")));
    const { status } = await team.team.until("stranger", "ForbiddenPath");
    assert.match(status.conditions[0].message, new RegExp(`${MOUNT}/${other.in("s3")}`));
    const asked = await requestsOf(other.namespace, from);
    assert.deepEqual(asked, []);
  });

  it("is read by AppRole and by a token, from Secrets that the account of the connection may read", async () => {
    await vault.enableAppRole();
    const team = await setUp.createTeam({}, {});
    const appRole = await vault.writeAppRole(`inlay-${team.namespace}`, { policies: [`inlay-${team.namespace}`] });
    await team.team.secret("login", { secretID: await appRole.newSecretID() });
    const secretID = { secret: { name: "login", key: "secretID" } };
    await team.connect({ auth: { appRole: { roleID: appRole.roleID, secretID } } }, "approle");
    await team.untilConnection("Ready", "approle");
    const first = await team.rotate();
    const through = (name: string) => team.source({ connection: { name }, ...team.data("s3") });
    await team.bind("harbor-s3", through("approle"));
    await team.holds(first);

    const tokenOf = () => vault.createToken([`inlay-${team.namespace}`]);
    await team.team.secret("login", { token: await tokenOf() });
    await team.connect({ auth: { token: { secret: { name: "login", key: "token" } } } }, "token");
    await team.team.rebind("harbor-s3", { sources: [through("token")] });
    await team.holds(await team.rotate());
    // Inlay uses the new token of the Secret. The former one is revoked.
    const { data } = await team.team.api.get(`${team.team.path("v1", "secrets")}/login`);
    await vault.api("POST", "auth/token/revoke", { token: Buffer.from(data.token, "base64").toString() });
    await team.team.until("harbor-s3", "VaultDenied");
    await team.team.secret("login", { token: await tokenOf() });
    await team.holds(await team.rotate());
  });

  it("causes a warning for a token in a ConfigMap, and the token is used", async () => {
    const team = await setUp.createTeam();
    const token = await vault.createToken([`inlay-${team.namespace}`]);
    const configMap = { metadata: { name: "login" }, data: { token } };
    await team.team.api.create(team.team.path("v1", "configmaps"), configMap);
    await team.connect({ auth: { token: { configMap: { name: "login", key: "token" } } } }, "readable");
    const { status } = await team.untilConnection("TokenReadable", "readable");
    assert.equal(status.conditions[0].status, "True");
    const first = await team.rotate();
    await team.bind("harbor-s3", team.source({ connection: { name: "readable" }, ...team.data("s3") }));
    await team.holds(first);
    await eventually(async () => {
      const { items } = await team.team.api.get(team.team.path("events.k8s.io/v1", "events"));
      assert.ok(items.some(({ type, reason }: AnyObject) => type === "Warning" && reason === "TokenReadable"));
    });
    await team.team.api.delete(`${team.team.path("v1", "configmaps")}/login`);
  });

  it("is read through the connection of another namespace only with a SecretGrant for it", async () => {
    const owner = await setUp.createTeam({
      auth: { kubernetes: { role: "inlay-shared", as: "Connection" } },
      paths: [`${MOUNT}/shared/{namespace}/*`],
    });
    const team = await createNamespace({ controller: false });
    await team.harbor();
    const folder = `shared/${team.namespace}`;
    await setUp.allow("shared", `path "${MOUNT}/+/shared/*" { capabilities = ["read"] }`, {
      namespaces: [owner.namespace],
    });
    const accessKey = secretText("access");
    await vault.putKv(MOUNT, `${folder}/s3`, { accessKey });
    const connection = { name: CONNECTION, namespace: owner.namespace };
    const vaultSource = { connection, refresh: "1s", data: { mount: MOUNT, path: `${folder}/s3` } };
    await team.bind("harbor-s3", {
      acknowledge: ["ReadableCopies"],
      sources: [{ name: "s3", vault: vaultSource, onMissing: "Remove" }],
      targets: [field("accesskey", { key: "accessKey" })],
    });
    await team.until("harbor-s3", "NotGranted");
    const grants = owner.team.path("inlay.dev/v1alpha1", "secretgrants");
    await team.api.create(grants, {
      apiVersion: "inlay.dev/v1alpha1",
      kind: "SecretGrant",
      metadata: { name: "vault" },
      spec: { from: [{ namespace: team.namespace }], to: [{ kind: "VaultConnection", name: CONNECTION }] },
    });
    await eventually(async () => assert.equal((await team.s3()).accesskey, accessKey));
    await team.api.delete(`${grants}/vault`);
    await team.until("harbor-s3", "GrantWithdrawn");
    await eventually(async () => assert.equal((await team.s3()).accesskey, undefined));
  });

  it("is read through a connection of another namespace only while the labels of the connection match the SecretGrant", async () => {
    const owner = await setUp.createTeam({
      auth: { kubernetes: { role: "inlay-labelled", as: "Connection" } },
      paths: [`${MOUNT}/labelled/{namespace}/*`],
    });
    const label = (to: string | null) =>
      owner.team.api.merge(owner.connectionPath(), { metadata: { labels: { shared: to } } });
    const team = await createNamespace({ controller: false });
    await team.harbor();
    await setUp.allow("labelled", `path "${MOUNT}/+/labelled/*" { capabilities = ["read"] }`, {
      namespaces: [owner.namespace],
    });
    const path = `labelled/${team.namespace}/s3`;
    const accessKey = secretText("access");
    await vault.putKv(MOUNT, path, { accessKey });
    await owner.team.api.create(owner.team.path("inlay.dev/v1alpha1", "secretgrants"), {
      apiVersion: "inlay.dev/v1alpha1",
      kind: "SecretGrant",
      metadata: { name: "vault" },
      spec: {
        from: [{ namespace: team.namespace }],
        to: [{ kind: "VaultConnection", selector: { matchLabels: { shared: "true" } } }],
      },
    });
    await owner.untilConnection("Ready");
    const from = (await vault.requests()).length;
    const connection = { name: CONNECTION, namespace: owner.namespace };
    await team.bind("harbor-s3", {
      acknowledge: ["ReadableCopies"],
      sources: [
        { name: "s3", vault: { connection, refresh: "24h", data: { mount: MOUNT, path } }, onMissing: "Remove" },
      ],
      targets: [field("accesskey", { key: "accessKey" })],
    });
    await team.until("harbor-s3", "NotGranted");
    assert.deepEqual(await requestsOf("labelled", from), []);
    await label("true");
    await eventually(async () => assert.equal((await team.s3()).accesskey, accessKey));
    await label(null);
    await team.until("harbor-s3", "GrantWithdrawn");
    await eventually(async () => assert.equal((await team.s3()).accesskey, undefined));
  });

  it("is no longer read as a deleted account, and is read by a new login as its successor", async () => {
    const team = await setUp.createTeam();
    await team.bind("harbor-s3");
    await team.holds(await team.rotate());
    const accounts = team.team.path("v1", "serviceaccounts");
    await team.team.api.delete(`${accounts}/inlay`);
    await team.team.until("harbor-s3", "ServiceAccountNotFound");
    const last = async () => (await requestsOf(team.namespace)).length;
    const from = await last();
    const other = await setUp.createTeam();
    // Other sources are read in the meantime, each several times.
    await other.bind("harbor-s3");
    await other.holds(await other.rotate());
    await other.holds(await other.rotate());
    await other.holds(await other.rotate());
    assert.equal(await last(), from);
    const logins = async () => (await vault.requests()).filter(({ path }) => path === "auth/kubernetes/login").length;
    const before = await logins();
    await team.team.createAccount();
    await team.holds(await team.rotate());
    assert.equal(await logins(), before + 1);
  });

  it("has one login for all bindings of an account, whose tokens are revoked when the controller stops", async () => {
    const team = await setUp.createTeam();
    const first = await team.rotate();
    await team.put("other", { accessKey: first });
    const from = (await vault.requests()).length;
    await Promise.all([
      team.bind("one"),
      team.bind("two", team.source(team.data("other")), {
        targets: [secretTarget([{ path: "data.key", from: { source: "s3", key: "accessKey" } }])],
      }),
    ]);
    await team.team.until("one", "Synced");
    await team.team.until("two", "Synced");
    const since = async () => (await vault.requests()).slice(from);
    const logins = (await since()).filter(({ path }) => path === "auth/kubernetes/login");
    assert.equal(logins.length, 1);
    await setUp.controller.stop();
    const revoked = (await since()).filter(({ path }) => path === "auth/token/revoke-self");
    assert.ok(
      revoked.some(({ who }) => who?.includes(team.namespace)),
      JSON.stringify(revoked),
    );
    await setUp.controller.start();
  });

  it("has a login with a token that the API server does not accept, and the role accepts no other audience", async () => {
    const team = await setUp.createTeam();
    const jwtFor = async (audience: string) => {
      const { stdout } = await controlPlane().kubectl(
        "create",
        "token",
        "inlay",
        `--namespace=${team.namespace}`,
        `--audience=${audience}`,
        "--duration=10m",
      );
      return stdout.trim();
    };
    const forVault = await jwtFor("vault");
    const answer = await team.team.api.create("/apis/authentication.k8s.io/v1/tokenreviews", {
      spec: { token: forVault },
    });
    assert.notEqual(answer.status.authenticated, true);
    const role = `inlay-${team.namespace}`;
    const login = (jwt: string) => vault.ask("POST", "auth/kubernetes/login", { role, jwt }, "");
    assert.equal((await login(forVault)).status, 200);
    assert.equal((await login(await jwtFor("other"))).status, 403);
  });
});
