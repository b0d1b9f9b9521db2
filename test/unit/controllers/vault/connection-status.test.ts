/** The status of a VaultConnection after a check, with the warning about a readable token. */
import assert from "node:assert/strict";
import type { ConnectionSpec, ConnectionStatus, VaultConnection } from "../../../../src/api/connection.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { isNewlyReadable, isSameStatus, statusOf } from "../../../../src/controllers/vault/controller.ts";

const NOW = new Date("2026-01-01T00:00:00.500Z");
const LATER = new Date("2026-01-02T00:00:00Z");
const READY = { version: "1.21.4" };
const SEALED = { problem: new Problem("VaultSealed", "vault:8200 is sealed; unseal it") };
const key = { name: "login", key: "token" };
const readable: Partial<ConnectionSpec> = { auth: { token: { configMap: key } }, paths: ["kv/*"] };

const connectionOf = (spec: Partial<ConnectionSpec> = {}, status?: ConnectionStatus, generation = 1) => {
  const connection: VaultConnection = {
    apiVersion: "inlay.dev/v1alpha1",
    kind: "VaultConnection",
    metadata: { name: "vault", namespace: "registry", uid: "1", resourceVersion: "1", generation },
    spec: { address: "https://vault:8200", serviceAccountName: "inlay", timeout: "5s", ...spec },
    ...(status && { status }),
  };
  return connection;
};
const conditionIn = ({ conditions: [condition] = [] }: ConnectionStatus) => condition ?? assert.fail("no condition");

describe("the status of a VaultConnection", () => {
  it("shows that the server is ready, since when, and its version", () => {
    assert.deepEqual(statusOf(connectionOf(), READY, NOW), {
      observedGeneration: 1,
      conditions: [
        {
          type: "Ready",
          status: "True",
          reason: "Ready",
          message: "the server answers and is unsealed",
          observedGeneration: 1,
          lastTransitionTime: "2026-01-01T00:00:00Z",
        },
      ],
      version: "1.21.4",
    });
  });

  it("shows whose login succeeds", () => {
    const messageWith = (auth: NonNullable<ConnectionSpec["auth"]>) =>
      conditionIn(statusOf(connectionOf({ auth, paths: ["kv/*"] }), READY, NOW)).message;
    const kubernetes = { mount: "kubernetes", role: "r", audiences: ["vault"] };
    assert.match(
      messageWith({ kubernetes: { ...kubernetes, as: "Binding" } }),
      /each binding logs in as its own account$/,
    );
    assert.match(messageWith({ kubernetes: { ...kubernetes, as: "Connection" } }), /and the login succeeds$/);
    assert.match(
      messageWith({ kubernetes: { ...kubernetes, role: "inlay-{namespace}", as: "Connection" } }),
      /is unsealed; each namespace logs in with its own role$/,
    );
    assert.match(messageWith({ token: { secret: key } }), /and the login succeeds$/);
  });

  it("is the same for the same result at another time, so that nothing is written", () => {
    for (const result of [READY, SEALED]) {
      const before = statusOf(connectionOf(), result, NOW);
      assert.ok(isSameStatus(before, statusOf(connectionOf({}, before), result, LATER)));
    }
    assert.ok(!isSameStatus(undefined, statusOf(connectionOf(), READY, NOW)));
  });

  it("shows the problem, and keeps the version of the server, but not one of another spec", () => {
    const before = statusOf(connectionOf(), READY, NOW);
    const status = statusOf(connectionOf({}, before), SEALED, LATER);
    const { reason, message, lastTransitionTime } = conditionIn(status);
    assert.deepEqual(
      [conditionIn(status).status, reason, message, lastTransitionTime],
      ["False", "VaultSealed", SEALED.problem.message, "2026-01-02T00:00:00Z"],
    );
    assert.equal(status.version, "1.21.4");
    assert.equal(statusOf(connectionOf({}, before, 2), SEALED, LATER).version, undefined);
    assert.equal(statusOf(connectionOf({}, before), {}, LATER).version, undefined);
  });

  it("warns of a token in a ConfigMap, whether the server is ready or not, and reports once that this is new", () => {
    const ready = statusOf(connectionOf(readable), READY, NOW);
    const sealed = statusOf(connectionOf(readable, ready), SEALED, LATER);
    assert.deepEqual([conditionIn(ready).status, conditionIn(ready).reason], ["True", "TokenReadable"]);
    assert.equal(conditionIn(sealed).reason, "VaultSealed");
    for (const status of [ready, sealed]) assert.match(conditionIn(status).message, /move it to a Secret$/);
    assert.ok(isNewlyReadable(connectionOf(readable)));
    assert.ok(isNewlyReadable(connectionOf(readable, ready, 2)), "another spec");
    assert.ok(!isNewlyReadable(connectionOf(readable, ready)));
    assert.ok(!isNewlyReadable(connectionOf()));
  });
});
