/** The check of requests as the account of compositions: only bindings, claims, and what the account's roles allow. */
import assert from "node:assert/strict";
import type { AuditedRequest } from "../../controller/audit.ts";
import { rightsOf } from "../../controller/rights.ts";
import { Composing } from "../../whole-run/composing.ts";

const kinds = new Map([
  ["example.com/Claim", [{ plural: "claims", namespaced: true }]],
  ["example.com/Other", [{ plural: "others", namespaced: true }]],
  ["/Secret", [{ plural: "secrets", namespaced: true }]],
]);
const verbs = ["get", "list", "watch", "patch", "delete"];
const shipped = rightsOf({ apiGroups: ["inlay.dev"], resources: ["secretbindings"], verbs: ["create", "update"] });
const aggregated = [
  ...rightsOf({ apiGroups: ["example.com"], resources: ["claims", "claims/status"], verbs }),
  ...rightsOf({ apiGroups: ["example.com"], resources: ["others"], verbs }),
  ...rightsOf({ apiGroups: [""], resources: ["secrets"], verbs }),
];
const compositionOf = (apiVersion: string, kind: string, type = "ToCompositeFieldPath") => ({
  at: "2",
  object: { spec: { for: { apiVersion, kind }, bindings: [{ patches: [{ type }] }] } },
});

const composing = new Composing(kinds, shipped);
composing.take(
  [
    compositionOf("example.com/v1", "Claim"),
    compositionOf("example.com/v1", "Other", "FromCompositeFieldPath"),
    compositionOf("v1", "Secret"),
  ],
  aggregated.map((right) => ({ right, from: "1", until: "8" })),
);

const request = (verb: string, resource: string, more: Partial<AuditedRequest> = {}): AuditedRequest => ({
  verb,
  resource,
  namespace: "shop",
  name: "harbor",
  user: "controller",
  as: "system:serviceaccount:inlay-system:inlay-compositions",
  asGroups: [],
  code: 200,
  lacks: undefined,
  uri: "",
  at: "5",
  ...more,
});

describe("the controller, as the account of compositions,", () => {
  for (const [verb, resource] of [
    ["create", "inlay.dev/secretbindings"],
    ["list", "example.com/claims"],
    ["watch", "example.com/others"],
    ["watch", "secrets"],
    ["patch", "example.com/claims"],
    ["patch", "example.com/claims/status"],
    ["get", "example.com/claims"],
  ] as const)
    it(`may ${verb} ${resource}`, () => {
      assert.equal(composing.isFor(request(verb, resource)), true);
    });

  for (const [what, asked] of [
    ["read bindings", request("get", "inlay.dev/secretbindings")],
    ["do with bindings what the manifest does not grant", request("delete", "inlay.dev/secretbindings")],
    ["delete claims", request("delete", "example.com/claims")],
    ["read a claim that is a Secret", request("get", "secrets")],
    ["write claims that no patch writes", request("patch", "example.com/others")],
    ["list kinds that are no claims", request("list", "pods", { lacks: "a right", code: 403 })],
    ["list claims before there is a composition", request("list", "example.com/claims", { at: "1" })],
    ["list claims after the role is gone", request("list", "example.com/claims", { at: "9" })],
  ] as const)
    it(`may not ${what}`, () => {
      assert.equal(composing.isFor(asked), false);
    });

  it("may try a request for a claim that the roles do not allow", () => {
    assert.equal(composing.isFor(request("list", "example.com/claims", { at: "9", code: 403 })), true);
  });
});
