/**
 * SecretGrants that are deleted or do not match any more. Written values stay or are removed, and no later value is
 * written.
 */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { isOfBarrier } from "../controller/barrier.ts";
import { eventually } from "../controller/eventually.ts";
import { type Neighbours, newGranted, newNeighbours } from "../controller/neighbours.ts";
import { auditLog } from "../controller/shared.ts";
import { RESTARTED_WITHIN_MS } from "../controller/test-namespace.ts";

/** "Within a second" on a busy machine. */
const A_SECOND = 5_000;

const messageOf = (binding: AnyObject): string => binding.status.conditions[0].message;

describe("a SecretGrant that is withdrawn", () => {
  const untilWithdrawn = async ({ reader }: Neighbours, withinMs = A_SECOND) => {
    const binding = await reader.until("harbor-s3", "GrantWithdrawn", withinMs);
    assert.match(messageOf(binding), /withdrawn.*rotate/);
    return binding;
  };

  it("keeps the written value, blocks later values, and is reported until it is granted again", async () => {
    const { both, value } = await newGranted();
    await both.withdraw();
    await untilWithdrawn(both);
    const rotated = await both.rotate();
    await both.barrier();
    assert.equal((await both.reader.s3()).accesskey, value);
    await eventually(async () => {
      const reported = (await both.reader.events("harbor-s3")).filter(({ reason }) => reason === "GrantWithdrawn");
      assert.deepEqual(
        reported.map(({ type }) => type),
        ["Warning"],
      );
    });
    await both.grant("again");
    await both.untilHeld(rotated, A_SECOND);
    await both.reader.until("harbor-s3", "Synced");
  });

  it("removes the written value if the source has onMissing: Remove, and reports that it must be rotated", async () => {
    const { both } = await newGranted({ onMissing: "Remove" });
    await both.withdraw();
    await both.untilHeld(undefined);
    await untilWithdrawn(both);
    await both.reader.rebind("harbor-s3", { defaults: { onConflict: "Force" } });
    await untilWithdrawn(both);
  });

  it("is reported also when another reason came between, until the source is granted again or not named any more", async () => {
    const { both, value } = await newGranted({ onMissing: "Remove" });
    const { reader } = both;
    await both.withdraw();
    await both.untilHeld(undefined);
    await untilWithdrawn(both);
    await reader.api.delete(`${reader.path("v1", "serviceaccounts")}/inlay`);
    await reader.until("harbor-s3", "ServiceAccountNotFound");
    await reader.createAccount();
    const { status } = await untilWithdrawn(both);
    assert.deepEqual(status.copiedSources, [`Secret ${both.owner.namespace}/bucket`]);
    await both.grant("again");
    await both.untilHeld(value);
    await reader.until("harbor-s3", "Synced");
    await both.withdraw("again");
    await untilWithdrawn(both);
    const other = { secret: { name: "other", namespace: both.owner.namespace }, name: "bucket" };
    await reader.rebind("harbor-s3", both.spec(other));
    const renamed = await reader.until("harbor-s3", "NotGranted");
    assert.equal(renamed.status.copiedSources, undefined);
  });

  it("leaves Ready true if the source is optional, with a message", async () => {
    const { both, value } = await newGranted({ optional: true });
    await both.withdraw();
    const binding = await eventually(async () => {
      const found = await both.reader.until("harbor-s3", "Synced");
      assert.match(found.status.targets[0].message, /withdrawn.*rotate/);
      return found;
    });
    assert.equal(binding.status.conditions[0].status, "True");
    assert.equal((await both.reader.s3()).accesskey, value);
  });

  it("never permits a value from after the withdrawal, however short it was", async () => {
    const { both, value } = await newGranted();
    let held = value;
    for (let round = 0; round < 8; round++) {
      await both.withdraw();
      await both.rotate();
      await both.barrier();
      assert.equal((await both.reader.s3()).accesskey, held);
      await untilWithdrawn(both);
      held = await both.rotate();
      await both.grant();
      await both.untilHeld(held);
    }
  });

  const ends: Record<string, [spec: Parameters<Neighbours["grant"]>[1], end: (both: Neighbours) => Promise<unknown>]> =
    {
      "is changed to another Secret": [
        {},
        (both) => both.owner.api.merge(both.grantPath(), { spec: { to: [{ kind: "Secret", name: "other" }] } }),
      ],
      "is changed to another account": [
        {},
        (both) =>
          both.owner.api.merge(both.grantPath(), {
            spec: { from: [{ namespace: both.reader.namespace, serviceAccountName: "other" }] },
          }),
      ],
      "selects by a label that is removed from the Secret": [
        { to: [{ kind: "Secret", selector: { matchLabels: { shared: "yes" } } }] },
        (both) =>
          both.owner.api.merge(`${both.owner.path("v1", "secrets")}/bucket`, {
            metadata: { labels: { shared: null } },
          }),
      ],
      "selects by a label that is removed from the namespace": [
        { from: [{ namespaceSelector: { matchLabels: { reads: "buckets" } } }] },
        (both) =>
          both.reader.api.merge(`/api/v1/namespaces/${both.reader.namespace}`, {
            metadata: { labels: { reads: null } },
          }),
      ],
    };
  for (const [how, [spec, end]] of Object.entries(ends)) {
    it(`because it ${how} blocks later values`, async () => {
      const { both, value } = await newNeighbours();
      await both.owner.api.merge(`${both.owner.path("v1", "secrets")}/bucket`, {
        metadata: { labels: { shared: "yes" } },
      });
      await both.reader.api.merge(`/api/v1/namespaces/${both.reader.namespace}`, {
        metadata: { labels: { reads: "buckets" } },
      });
      await both.grant("bucket", spec);
      await both.reader.bind("harbor-s3", both.spec());
      await both.untilHeld(value);
      await end(both);
      await both.rotate();
      await untilWithdrawn(both);
      await both.barrier();
      assert.equal((await both.reader.s3()).accesskey, value);
    });
  }

  it("while the controller was stopped blocks the values since then, and a start after that writes nothing", async () => {
    const { both, value } = await newGranted();
    const { controller } = both.reader;
    await controller.stop();
    await both.rotate();
    await both.withdraw();
    await controller.start();
    await untilWithdrawn(both, RESTARTED_WITHIN_MS);
    assert.equal((await both.reader.s3()).accesskey, value);
    await controller.stop();
    const mark = await auditLog().mark();
    await controller.start();
    await both.barrier();
    const writes = (await auditLog().controllerWritesSince(mark)).filter(
      ({ namespace }) => namespace === both.reader.namespace,
    );
    assert.ok(writes.some(isOfBarrier));
    assert.deepEqual(
      writes.filter((write) => !isOfBarrier(write)),
      [],
    );
  });

  it("is deleted with its namespace, though the deletion of both is delayed", async () => {
    const { both, value } = await newGranted();
    const held = { metadata: { finalizers: ["example.com/held"] } };
    const secret = `${both.owner.path("v1", "secrets")}/bucket`;
    for (const path of [secret, both.grantPath()]) await both.owner.api.merge(path, held);
    await both.owner.api.delete(`/api/v1/namespaces/${both.owner.namespace}`);
    await both.rotate();
    const binding = await untilWithdrawn(both);
    assert.match(messageOf(binding), /being deleted/);
    assert.equal((await both.reader.s3()).accesskey, value);
    for (const path of [secret, both.grantPath()]) await both.owner.api.merge(path, { metadata: { finalizers: null } });
  });
});
