/** The settings that a VaultConnection and its Secrets and ConfigMaps give, and the messages about mistakes. */
import assert from "node:assert/strict";
import { inspect } from "node:util";
import type { ConnectionSpec, VaultConnection } from "../../../../src/api/connection.ts";
import { idOf, type KubeObject } from "../../../../src/apimachinery/objects.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { CONFIG_MAPS, SECRETS } from "../../../../src/apimachinery/resources.ts";
import { isSameSettings, isTokenReadable, settingsOf } from "../../../../src/controllers/vault/reconciler.ts";
import { namedObjects, needsAccount } from "../../../../src/vault/named-keys.ts";
import { foundIn, secretText } from "../../../controller/leak-detector.ts";
import { makeCertificate } from "../../kube/server.ts";

const INLAY = "system:serviceaccount:registry:inlay";
const appRole = { mount: "approle", roleID: "harbor", secretID: { secret: { name: "login", key: "secretID" } } };
const kubernetes = { mount: "kubernetes", role: "inlay-{namespace}", audiences: ["vault"], as: "Binding" as const };

const connectionOf = (spec: Partial<ConnectionSpec>): VaultConnection => ({
  apiVersion: "inlay.dev/v1alpha1",
  kind: "VaultConnection",
  metadata: { name: "vault", namespace: "registry", uid: "1", resourceVersion: "1" },
  spec: { address: "https://vault.vault.svc:8200", serviceAccountName: "inlay", timeout: "5s", ...spec },
});

const base64 = (value: string | Uint8Array) => Buffer.from(value).toString("base64");

/** A Secret or ConfigMap as the API server has it. */
const found = (resource: typeof SECRETS, name: string, data?: Record<string, string>) => {
  const object = { kind: resource.kind, metadata: { name }, ...(data && { data }) } as object as KubeObject;
  return [idOf({ resource, namespace: "registry", name }), object] as const;
};
const settings = (spec: Partial<ConnectionSpec>, ...objects: ReturnType<typeof found>[]) =>
  settingsOf(connectionOf(spec), INLAY, new Map(objects));

const messageOf = (spec: Partial<ConnectionSpec>, ...objects: ReturnType<typeof found>[]): string => {
  try {
    settings(spec, ...objects);
  } catch (error) {
    assert.ok(error instanceof Problem);
    assert.equal(error.reason, "ConnectionNotReady");
    assert.deepEqual(foundIn(inspect(error)), []);
    return error.message;
  }
  return assert.fail("nothing is wrong");
};

describe("the settings of a VaultConnection", () => {
  it("consist of the address and the timeout if there is no login, and need no account", () => {
    const connection = connectionOf({});
    assert.deepEqual(settings({}), {
      key: "registry/vault",
      address: new URL("https://vault.vault.svc:8200"),
      timeoutMs: 5_000,
    });
    assert.deepEqual(namedObjects(connection), []);
    assert.equal(needsAccount(connection), false);
  });

  it("have the login of each binding, or of the account of the connection", () => {
    const { as: _, ...login } = kubernetes;
    assert.deepEqual(settings({ auth: { kubernetes } }).auth, { kind: "kubernetes", ...login });
    assert.equal(needsAccount(connectionOf({ auth: { kubernetes } })), false);
    const auth = { kubernetes: { ...kubernetes, as: "Connection" as const } };
    assert.deepEqual(settings({ auth }).auth, { kind: "kubernetes", ...login, as: INLAY });
    assert.equal(needsAccount(connectionOf({ auth })), true);
  });

  it("have values from Secrets and ConfigMaps, each of which is read once", async () => {
    const { cert } = await makeCertificate();
    const secretID = secretText("secret-id");
    const ca = { secret: { name: "login", key: "ca.crt" } };
    const spec: Partial<ConnectionSpec> = { namespace: "team-a", tls: { ca, serverName: "vault" }, auth: { appRole } };
    const login = found(SECRETS, "login", { secretID: base64(`${secretID}\n`), "ca.crt": base64(cert) });
    const made = settings(spec, login);
    assert.deepEqual(namedObjects(connectionOf(spec)), [{ resource: SECRETS, namespace: "registry", name: "login" }]);
    assert.equal(needsAccount(connectionOf(spec)), true);
    assert.match(made.ca ?? "", /^-----BEGIN CERTIFICATE-----\n[^-]+-----END CERTIFICATE-----\n$/);
    assert.deepEqual([made.namespace, made.serverName], ["team-a", "vault"]);
    assert.ok(made.auth?.kind === "appRole" && made.auth.secretID.reveal() === secretID);
    assert.deepEqual(foundIn(inspect(made, { depth: null }) + JSON.stringify(made)), []);
  });

  it("take a token from a ConfigMap too, which everyone who may read ConfigMaps can read", () => {
    const token = secretText("token");
    const configMap = { name: "login", key: "token" };
    const { auth } = settings({ auth: { token: { configMap } } }, found(CONFIG_MAPS, "login", { token }));
    assert.ok(auth?.kind === "token" && auth.token.reveal() === token);
    assert.equal(isTokenReadable(connectionOf({ auth: { token: { configMap } } })), true);
    assert.equal(isTokenReadable(connectionOf({ auth: { token: { secret: configMap } } })), false);
  });

  it("are the same if nothing that matters for the login has changed", () => {
    const [one, other] = [secretText("secret-id"), secretText("secret-id")];
    const of = (value: string, more: Record<string, string> = {}, spec: Partial<ConnectionSpec> = {}) =>
      settings({ auth: { appRole }, ...spec }, found(SECRETS, "login", { secretID: base64(value), ...more }));
    assert.ok(isSameSettings(of(one), of(one, { other: base64(other) })));
    assert.ok(isSameSettings(of(one), of(one, {}, { paths: ["kv/*"] })));
    assert.ok(!isSameSettings(of(one), of(other)));
    assert.ok(!isSameSettings(of(one), of(one, {}, { namespace: "team-b" })));
    assert.ok(!isSameSettings(of(one), of(one, {}, { address: "https://vault:8201" })));
    assert.ok(!isSameSettings(of(one), of(one, {}, { auth: { appRole: { ...appRole, roleID: "x" } } })));
    assert.ok(!isSameSettings(of(one), settings({})));
  });

  it("name what is missing or wrong, and where, and never the value", () => {
    const login = (value: string | Uint8Array) => found(SECRETS, "login", { secretID: base64(value) });
    const spec = { auth: { appRole } };
    const value = secretText("secret-id");
    assert.equal(
      messageOf(spec),
      "spec.auth.appRole.secretID: there is no Secret registry/login; create it, or correct the name",
    );
    for (const data of [undefined, {}, { other: base64(value) }])
      assert.equal(
        messageOf(spec, found(SECRETS, "login", data)),
        "spec.auth.appRole.secretID: Secret registry/login has no key secretID; add it, or correct the key",
      );
    const where = "spec.auth.appRole.secretID, key secretID of Secret registry/login: the value";
    assert.ok(messageOf(spec, login("\n")).startsWith(`${where} is empty; `));
    assert.ok(
      messageOf(spec, login(`${value}\r\nX-Other: ${value}`)).startsWith(`${where} contains spaces, line breaks `),
    );
    assert.ok(messageOf(spec, login(Buffer.of(0xff, 0xfe))).startsWith(`${where} is not UTF-8 text; `));
    const ca = { configMap: { name: "ca", key: "ca.crt" } };
    const at = "spec.tls.ca, key ca.crt of ConfigMap registry/ca: ";
    for (const text of ["", value, `-----BEGIN PRIVATE KEY-----\n${base64(value)}\n-----END PRIVATE KEY-----\n`])
      assert.ok(messageOf({ tls: { ca } }, found(CONFIG_MAPS, "ca", { "ca.crt": text })).startsWith(at));
    assert.match(messageOf({ address: "https://vault:99999" }), /^spec\.address: https:\/\/vault:99999 is not a URL; /);
  });
});
