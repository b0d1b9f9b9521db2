/** When a deleted composition gives up the deletion of its bindings. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../../src/api/binding.ts";
import { COMPOSITION_LABEL } from "../../../../src/api/composed.ts";
import type { BindingComposition } from "../../../../src/api/composition.ts";
import type { Resource } from "../../../../src/apimachinery/objects.ts";
import { BINDING_COMPOSITIONS } from "../../../../src/apimachinery/resources.ts";
import { CleanUp } from "../../../../src/controllers/composition/clean-up.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import { fakeClock } from "../../clock.ts";

const DELETED_AT = "2026-01-01T00:00:00Z";

const bindingOf = (name: string, deletionTimestamp?: string) =>
  ({
    metadata: { namespace: "registry", name, uid: name, ...(deletionTimestamp && { deletionTimestamp }) },
  }) as SecretBinding;

describe("a deleted composition", () => {
  const clock = fakeClock();
  let bindings: SecretBinding[];
  let said: string[];
  let isRemoved: boolean;
  let deletes: (name: string) => void;
  let isOngoing: (kind: Resource) => boolean | undefined;
  let cleanUp: CleanUp;
  const composition = {
    metadata: { name: "s3", uid: "s3", deletionTimestamp: DELETED_AT },
    spec: { serviceAccount: { namespace: "inlay-system", name: "inlay-compositions" }, deletionPolicy: "Delete" },
  } as BindingComposition;

  beforeEach(() => {
    bindings = [bindingOf("first"), bindingOf("second")];
    said = [];
    isRemoved = false;
    deletes = () => {};
    isOngoing = () => false;
    const services = {
      bindings: { state: { phase: "synced" } },
      kindDeletions: { isOngoing: async (kind: Resource) => isOngoing(kind) },
      client: { delete: async (_: unknown, { name }: { name: string }) => deletes(name) },
      events: {
        recordOn: (_: unknown, { reason, note }: { reason: string; note: string }) => said.push(`${reason}: ${note}`),
      },
      log: { info: () => {}, warn: () => {} },
      serverTime: () => Date.now(),
    };
    const index = { allOf: () => bindings };
    const reporter = {
      isHeld: () => true,
      hold: async () => ({}),
      removeFinalizer: async () => {
        isRemoved = true;
      },
    };
    cleanUp = new CleanUp(services as never, index as never, reporter as never);
  });

  const refuse = () => {
    throw new ApiError("DELETE", 503, "ServiceUnavailable");
  };

  it("does not give up because of one failure of many deletions that took long", async () => {
    deletes = (name) => name === "second" && refuse();
    await clock.pass(Date.parse(DELETED_AT) + 120_000 - Date.now());
    await cleanUp.run(composition);
    assert.ok(!isRemoved);
    deletes = () => {};
    await cleanUp.run(composition);
    await clock.pass(60_000);
    deletes = refuse;
    await cleanUp.run(composition);
    assert.deepEqual([isRemoved, said], [false, []]);
  });

  it("gives up if they fail for long, and names those that are not being deleted", async () => {
    bindings = [bindingOf("first", DELETED_AT), bindingOf("second")];
    deletes = refuse;
    await clock.pass(Date.parse(DELETED_AT) + 60_000 - Date.now());
    await cleanUp.run(composition);
    await clock.pass(5_000);
    await cleanUp.run(composition);
    assert.ok(isRemoved);
    const stay =
      "ReleaseAbandoned: deletion of bindings abandoned after 60 s, so these stay: registry/second; delete them with: ";
    assert.ok(said[0]?.startsWith(`${stay}kubectl delete secretbindings -A -l ${COMPOSITION_LABEL}=s3 (`), said[0]);
  });

  it("prints the whole command, however long the names are that users chose for claims", async () => {
    bindings = Array.from({ length: 5 }, (_, at) => bindingOf(`${"n".repeat(250)}-${at}`));
    deletes = refuse;
    await clock.pass(Date.parse(DELETED_AT) + 60_000 - Date.now());
    await cleanUp.run(composition);
    await clock.pass(5_000);
    await cleanUp.run(composition);
    assert.match(said[0]?.slice(0, 1024) ?? "", /stay: 5 bindings; delete .* -l inlay\.dev\/composition=s3 \(/);
  });

  it("deletes no binding while it is not known whether its own kind is being deleted", async () => {
    isOngoing = (kind) => (kind === BINDING_COMPOSITIONS ? undefined : false);
    deletes = () => assert.fail("deleted");
    assert.deepEqual(await cleanUp.run(composition), { retry: "backoff" });
  });
});
