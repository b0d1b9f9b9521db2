/** The check of requests for VaultConnections: only tokens of the account itself, and the Secrets and ConfigMaps that connections name. */
import assert from "node:assert/strict";
import type { AuditedRequest } from "../../controller/audit.ts";
import { Named } from "../../controller/named.ts";

const account = (name: string, namespace = "registry") => `system:serviceaccount:${namespace}:${name}`;
const key = (name: string) => ({ name, key: "k" });
const connection = (name: string, at: string, spec: object) => ({
  at,
  object: { metadata: { name, namespace: "registry" }, spec: { serviceAccountName: "inlay", ...spec } },
});
const binding = (namespace: string, vault: object, at = "2") => ({
  at,
  object: {
    metadata: { name: "s3", namespace },
    spec: { serviceAccountName: "inlay", sources: [{ name: "s3", vault }], targets: [] },
  },
});

const named = new Named(
  [
    binding("registry", { connection: { name: "own" } }),
    binding("shop", { connection: { name: "own", namespace: "registry" } }),
    binding("static", { connection: { name: "appRole", namespace: "registry" } }),
  ],
  new Map(),
);
named.takeConnections([
  connection("own", "4", { auth: { kubernetes: { as: "Binding" } }, tls: { ca: { configMap: key("ca") } } }),
  connection("shared", "4", { auth: { kubernetes: { as: "Connection" } }, serviceAccountName: "vault" }),
  connection("appRole", "4", { auth: { appRole: { secretID: { secret: key("approle") } } } }),
  connection("static", "4", { auth: { token: { secret: key("token") } } }),
]);

const request = (verb: string, resource: string, name: string, more: Partial<AuditedRequest> = {}): AuditedRequest => ({
  verb,
  resource,
  namespace: "registry",
  name,
  user: "controller",
  as: account("inlay"),
  asGroups: [],
  code: 200,
  lacks: undefined,
  uri: "",
  at: "5",
  ...more,
});
const token = (name: string, more: Partial<AuditedRequest> = {}) =>
  request("create", "serviceaccounts/token", name, more);
const ofShop = { as: account("inlay", "shop"), namespace: "shop" };

describe("a request of an account for a VaultConnection", () => {
  for (const [what, asked] of [
    ["a token of its own, for a binding", token("inlay")],
    ["a token of its own, for a binding of another namespace", token("inlay", ofShop)],
    ["a token of its own, for a connection", token("vault", { as: account("vault") })],
    ["the ConfigMap with the CA", request("get", "configmaps", "ca")],
    ["the SecretID", request("watch", "secrets", "approle")],
    ["the token of Vault", request("list", "secrets", "token")],
  ] as const)
    it(`may be ${what}`, () => {
      assert.equal(named.isAccount(asked), true);
      assert.equal(named.isFor(asked), true);
    });

  for (const [what, asked] of [
    ["a token of another account", token("rotator")],
    ["a token of its name in another namespace", token("inlay", { namespace: "shop" })],
    ["a token before there is such a connection", token("inlay", { at: "3" })],
    [
      "a token for a connection that logs in otherwise",
      token("inlay", { as: account("inlay", "static"), namespace: "static" }),
    ],
    ["what another account reads", request("get", "secrets", "approle", { as: account("vault") })],
    ["another Secret", request("get", "secrets", "bucket")],
    ["a Secret of another namespace", request("get", "secrets", "approle", ofShop)],
    ["a change of what it reads", request("patch", "secrets", "approle")],
    ["all Secrets of the cluster", request("list", "secrets", "", { namespace: "" })],
  ] as const)
    it(`may not be ${what}`, () => {
      assert.equal(named.isFor(asked), false);
    });

  it("is allowed only for an account that a binding or connection names", () => {
    assert.equal(named.isAccount(token("rotator", { as: account("rotator") })), false);
  });
});
