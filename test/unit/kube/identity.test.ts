/** Identities for requests, and their names in messages. */
import assert from "node:assert/strict";
import { CONTROLLER, describeIdentity, serviceAccountIdentity } from "../../../src/kube/identity.ts";

describe("an identity", () => {
  it("of a ServiceAccount is its user name in Kubernetes", () => {
    assert.equal(serviceAccountIdentity("registry", "inlay"), "system:serviceaccount:registry:inlay");
  });

  it("is described by kind, namespace and name, or as Inlay's own account", () => {
    assert.equal(describeIdentity(serviceAccountIdentity("registry", "in.lay")), "ServiceAccount registry/in.lay");
    assert.equal(describeIdentity(CONTROLLER), "Inlay's own account");
  });

  it("of an account is never the controller's", () => {
    assert.notEqual(serviceAccountIdentity("", ""), CONTROLLER);
  });
});
