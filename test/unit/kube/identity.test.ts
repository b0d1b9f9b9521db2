/** As whom requests are made, and how that is called in messages. */
import assert from "node:assert/strict";
import { CONTROLLER, describeIdentity, serviceAccountIdentity } from "../../../src/kube/identity.ts";

describe("an identity", () => {
  it("of a ServiceAccount is the user name that Kubernetes gives it", () => {
    assert.equal(serviceAccountIdentity("registry", "inlay"), "system:serviceaccount:registry:inlay");
  });

  it("is called by its kind, namespace and name, and the controller by what it is", () => {
    assert.equal(describeIdentity(serviceAccountIdentity("registry", "in.lay")), "ServiceAccount registry/in.lay");
    assert.equal(describeIdentity(CONTROLLER), "Inlay's own account");
  });

  it("is never that of the controller", () => {
    assert.notEqual(serviceAccountIdentity("", ""), CONTROLLER);
  });
});
