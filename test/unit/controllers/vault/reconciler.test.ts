/** When a VaultConnection is opened, replaced and closed, and what its status and its bindings get. */
import assert from "node:assert/strict";
import type { VaultConnection } from "../../../../src/api/connection.ts";
import { Installation } from "../../../../src/api/installation.ts";
import { REFRESH_ANNOTATION } from "../../../../src/api/refresh.ts";
import { VaultAddresses } from "../../../../src/api/vault-addresses.ts";
import type { ObjectMeta, ObjectRef } from "../../../../src/apimachinery/objects.ts";
import { ConnectionReconciler, type OpenConnection } from "../../../../src/controllers/vault/reconciler.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import type { ConnectionCheck } from "../../../../src/vault/connection.ts";
import { VaultConnections } from "../../../../src/vault/connections.ts";
import type { ConnectionSettings } from "../../../../src/vault/settings.ts";
import type { ConnectionState } from "../../../../src/vault/types.ts";
import { secretText } from "../../../controller/leak-detector.ts";
import { fakeClient } from "../../fakes.ts";
import { FakeInformers, placeOf, version } from "../../informers.ts";

const KEY = "registry/vault";
const TOKEN = { secret: { name: "login", key: "token" } };
const READY: ConnectionCheck = { version: "1.21.4" };

/** A connection, and whether it was closed. */
interface Made extends OpenConnection {
  readonly settings: ConnectionSettings;
}

describe("the reconciler of VaultConnections", () => {
  let stored: VaultConnection | undefined;
  let secrets: Map<string, Record<string, string>>;
  let reads: string[];
  let refusedRead: Error | undefined;
  let watcher: FakeInformers;
  let made: Made[];
  let ended: OpenConnection[];
  let checked: string[];
  let results: Map<string, ConnectionCheck>;
  let reported: string[];
  let heard: string[];
  let registry: VaultConnections;
  let reconciler: ConnectionReconciler;
  /** By age, if it is beyond the limit of its namespace. */
  let number: number | undefined;

  beforeEach(() => {
    stored = undefined;
    secrets = new Map();
    [reads, made, ended, checked, reported, heard] = [[], [], [], [], [], []];
    refusedRead = undefined;
    results = new Map();
    watcher = new FakeInformers();
    registry = new VaultConnections();
    registry.listed();
    registry.listen({ changed: () => heard.push(stateText()), refresh: () => heard.push("refresh") });
    number = undefined;
    reconciler = new ConnectionReconciler({
      installation: new Installation({
        ownNamespace: "inlay-system",
        vaultAddresses: new VaultAddresses(["vault.vault.svc:8200"]),
      }),
      client: fakeClient({
        get: async (identity: string, ref: ObjectRef) => {
          reads.push(`${identity.split(":").at(-1)} ${placeOf(ref)}`);
          if (refusedRead !== undefined) throw refusedRead;
          return { data: secrets.get(ref.name) };
        },
      }),
      store: { get: () => stored },
      cpu: { run: async (_, work) => work() },
      numberBeyond: () => number,
      watcher,
      registry,
      checks: {
        start: (key) => {
          checked.push(`start ${key}`);
          results.delete(key);
        },
        stop: (key) => results.delete(key),
        now: (key) => checked.push(`now ${key}`),
        resultOf: (key) => results.get(key),
        isAwaited: () => false,
      },
      connect: (settings) => {
        const never = () => assert.fail("the controller reads nothing");
        const connection: Made = {
          settings,
          loginOf: never,
          data: never,
          metadata: never,
          health: never,
          check: async () => READY,
          isUsed: true,
          retryLogins: () => heard.push("logins"),
          close: async () => {},
        };
        made.push(connection);
        return connection;
      },
      close: (connection) => ended.push(connection),
      report: async (_, { version, problem }) => {
        reported.push(problem?.reason ?? `ready ${version}`);
        return {};
      },
      reportLater: async (_, { reason, message }) => {
        reported.push(`later ${reason}: ${message}`);
        return undefined;
      },
    });
    watcher.objects.set("registry/serviceaccounts/inlay", version("1"));
  });

  const stateOf = (): ConnectionState | undefined => registry.get({ namespace: "registry", name: "vault" });
  function stateText(): string {
    const state = stateOf();
    if (state?.phase === "failed") return state.problem.reason;
    return state?.phase === "ready" ? `ready ${state.revision}` : (state?.phase ?? "gone");
  }
  const LOGIN = { auth: { token: TOKEN }, paths: ["kv/*"] };
  const put = (
    spec: Partial<VaultConnection["spec"]> = {},
    metadata: Partial<ObjectMeta> = {},
    login: object = LOGIN,
  ) => {
    const generation = (stored?.metadata.generation ?? 0) + 1;
    stored = {
      apiVersion: "inlay.dev/v1alpha1",
      kind: "VaultConnection",
      metadata: { name: "vault", namespace: "registry", uid: "1", resourceVersion: "1", generation, ...metadata },
      spec: {
        address: "https://vault.vault.svc:8200",
        serviceAccountName: "inlay",
        timeout: "5s",
        ...login,
        ...spec,
      },
    };
  };
  let secretVersion = 1;
  const putSecret = (data: Record<string, string>) => {
    const encoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")]);
    secrets.set("login", Object.fromEntries(encoded));
    watcher.objects.set("registry/secrets/login", version(`${++secretVersion}`));
  };
  const reconcile = () => reconciler.reconcile(KEY);
  const tokenOf = (connection: Made | undefined) => {
    const auth = connection?.settings.auth;
    return auth?.kind === "token" ? auth.token.reveal() : undefined;
  };

  it("uses nothing of a connection beyond the limit of its namespace, and says the number and the limit", async () => {
    put();
    putSecret({ token: secretText("token") });
    await reconcile();
    number = 101;
    await reconcile();
    assert.deepEqual([ended.length, reconciler.health, watcher.watchedBy(KEY)], [1, [], []]);
    assert.match(reported.at(-1) ?? "", /^later LimitExceeded: this is number 101 .* only the oldest 100 count/);
    assert.equal(stateText(), "LimitExceeded");
    number = undefined;
    await reconcile();
    assert.equal(stateText(), "ready 2");
  });

  it("reads the named objects as the account, connects, checks, and reports the result", async () => {
    const token = secretText("token");
    put({}, { labels: { team: "a" } });
    putSecret({ token });
    assert.deepEqual(await reconcile(), { retry: "never" });
    assert.deepEqual(watcher.watchedBy(KEY), ["registry/serviceaccounts/inlay", "registry/secrets/login"]);
    assert.deepEqual(reads, ["inlay registry/secrets/login"]);
    assert.equal(tokenOf(made[0]), token);
    assert.deepEqual([checked, reported, heard], [[`start ${KEY}`], [], ["ready 1"]]);
    const state = stateOf();
    assert.ok(state?.phase === "ready" && state.connected === made[0]);
    assert.deepEqual([state.paths, state.labels], [["kv/*"], { team: "a" }]);
    assert.deepEqual(reconciler.health, ["pending"]);
    results.set(KEY, READY);
    await reconcile();
    assert.deepEqual([reads.length, made.length, reported, heard.length], [1, 1, ["ready 1.21.4"], 1]);
    assert.deepEqual(reconciler.health, ["ready"]);
  });

  it("opens another connection for another value, and then closes the former connection", async () => {
    put();
    putSecret({ token: secretText("token") });
    await reconcile();
    const token = secretText("token");
    putSecret({ token });
    await reconcile();
    assert.equal(tokenOf(made[1]), token);
    assert.deepEqual(ended, [made[0]]);
    assert.deepEqual(heard, ["ready 1", "ready 2"]);
    assert.equal(checked.length, 2);
  });

  it("uses a new login for an account that was recreated", async () => {
    put();
    putSecret({ token: secretText("token") });
    await reconcile();
    watcher.objects.set("registry/serviceaccounts/inlay", { ...version("9"), uid: "another" });
    await reconcile();
    assert.deepEqual([made.length, ended], [2, [made[0]]]);
  });

  it("keeps the connection if another key, another path or a label changes; bindings are requeued for the last two", async () => {
    const token = secretText("token");
    put();
    putSecret({ token });
    await reconcile();
    putSecret({ token, other: secretText("other") });
    await reconcile();
    assert.deepEqual([reads.length, heard], [2, ["ready 1"]]);
    put({ paths: ["kv/*", "pki/*"] });
    await reconcile();
    put({ paths: ["kv/*", "pki/*"] }, { labels: { team: "b" } });
    await reconcile();
    assert.deepEqual([made.length, ended.length, checked.length], [1, 0, 1]);
    assert.deepEqual(heard, ["ready 1", "ready 2", "ready 2"]);
  });

  it("closes the connection if a Secret, a key or the account is missing, and connects again when it exists", async () => {
    const token = secretText("token");
    const account = version("1");
    put();
    const steps: [break_: () => void, reason: string][] = [
      [() => watcher.objects.delete("registry/secrets/login"), "ConnectionNotReady"],
      [() => putSecret({ other: token }), "ConnectionNotReady"],
      [() => watcher.objects.delete("registry/serviceaccounts/inlay"), "ServiceAccountNotFound"],
      [() => watcher.refuse("registry/secrets/login"), "Forbidden"],
    ];
    for (const [at, [break_, reason]] of steps.entries()) {
      watcher.objects.set("registry/serviceaccounts/inlay", account);
      putSecret({ token });
      await reconcile();
      assert.equal(stateText(), `ready ${at + 1}`);
      break_();
      await reconcile();
      assert.equal(stateText(), reason);
      assert.equal(reported.at(-1), reason);
      assert.deepEqual(ended, made);
      assert.deepEqual(reconciler.health, ["not_ready"]);
    }
  });

  it("keeps the connection while the API server does not answer, and retries", async () => {
    put();
    putSecret({ token: secretText("token") });
    await reconcile();
    refusedRead = new ApiError("GET /x", 0, "ECONNRESET");
    putSecret({ token: secretText("token") });
    assert.deepEqual(await reconcile(), { retry: "backoff" });
    assert.deepEqual([stateText(), ended.length, reported], ["ready 1", 0, []]);
    refusedRead = undefined;
    await reconcile();
    assert.equal(stateText(), "ready 2");
  });

  it("reports that the API server did not answer the first time", async () => {
    put();
    putSecret({ token: secretText("token") });
    refusedRead = new ApiError("GET /x", 0, "ECONNRESET");
    assert.deepEqual(await reconcile(), { retry: "backoff" });
    assert.deepEqual([stateText(), reported], ["Unavailable", ["Unavailable"]]);
  });

  it("does nothing until the watches are in sync", async () => {
    put();
    registry.appeared(KEY);
    watcher.pend("registry/secrets/login");
    await reconcile();
    assert.deepEqual([stateText(), reads, reported], ["pending", [], []]);
    assert.deepEqual(reconciler.health, ["pending"]);
  });

  it("connects to no address that the configuration does not list, and names the line to add", async () => {
    put({ address: "https://vault.other.svc:8200" }, {}, {});
    await reconcile();
    const state = stateOf();
    assert.ok(state?.phase === "failed");
    assert.equal(state.problem.reason, "ForbiddenAddress");
    assert.match(state.problem.message, /vault\.addresses.*vault\.other\.svc:8200/s);
    assert.deepEqual([made, reported], [[], ["ForbiddenAddress"]]);
  });

  it("needs no account if it reads nothing and each binding logs in as its own account", async () => {
    watcher.objects.clear();
    const kubernetes = { mount: "kubernetes", role: "r", audiences: ["vault"], as: "Binding" as const };
    put({ auth: { kubernetes } });
    await reconcile();
    assert.deepEqual([stateText(), watcher.watchedBy(KEY), reads], ["ready 1", [], []]);
    put({ auth: { kubernetes: { ...kubernetes, as: "Connection" } } });
    await reconcile();
    assert.equal(stateText(), "ServiceAccountNotFound");
  });

  it("does nothing in a closed namespace, and uses no account of the installation", async () => {
    put({}, { namespace: "kube-system" });
    await reconcile();
    assert.equal(stateText(), "ForbiddenNamespace");
    assert.deepEqual([watcher.watchedBy(KEY), reads, made], [[], [], []]);
  });

  it("reads at once for each new value of the annotation, but not for the first one that it sees", async () => {
    put({}, { annotations: { [REFRESH_ANNOTATION]: "1" } });
    putSecret({ token: secretText("token") });
    await reconcile();
    await reconcile();
    assert.deepEqual([checked, heard], [[`start ${KEY}`], ["ready 1"]]);
    put({}, { annotations: { [REFRESH_ANNOTATION]: "2" } });
    await reconcile();
    await reconcile();
    put();
    await reconcile();
    assert.deepEqual(
      [checked, heard],
      [
        [`start ${KEY}`, `now ${KEY}`],
        ["ready 1", "logins", "refresh"],
      ],
    );
    reconciler.readAgain(KEY);
    assert.deepEqual(heard.slice(3), ["logins", "refresh"]);
  });

  it("closes the connection when it is deleted, or replaced by another one of the same name", async () => {
    put();
    putSecret({ token: secretText("token") });
    await reconcile();
    put({}, { uid: "2" });
    await reconcile();
    assert.deepEqual(ended, [made[0]]);
    assert.deepEqual(heard, ["ready 1", "pending", "ready 2"]);
    stored = undefined;
    await reconcile();
    assert.deepEqual([ended, stateText(), watcher.watchedBy(KEY), reconciler.health], [made, "gone", [], []]);
    put();
    await reconcile();
    reconciler.closeAll();
    assert.deepEqual(ended, made);
  });
});
