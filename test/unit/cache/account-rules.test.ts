/** The cost of cached answers about permissions. */
import assert from "node:assert/strict";
import { AccountRules } from "../../../src/cache/account-rules.ts";
import { serviceAccountIdentity } from "../../../src/kube/identity.ts";
import { fakeClient } from "../fakes.ts";

const identity = serviceAccountIdentity("registry", "inlay");

describe("reviews of permissions", () => {
  it("of many namespaces in a minute do not slow down with the cached answers", async () => {
    const client = fakeClient({ rules: async () => ({ incomplete: false, resourceRules: [] }) });
    const reviews = new AccountRules(client);
    const start = performance.now();
    for (let n = 0; n < 20_000; n++) await reviews.of({ identity, namespace: `team-${n}` });
    const took = performance.now() - start;
    assert.ok(took < 1_500, `it took ${took} ms`);
  });
});
