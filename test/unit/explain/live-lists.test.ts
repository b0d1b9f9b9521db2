/** Lists of a cluster in place of watches, for several readers at once. */
import assert from "node:assert/strict";
import { LiveLists } from "../../../src/explain/live-lists.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { fakeTransport } from "../fakes.ts";
import { CONFIGMAPS, SECRETS } from "../resources.ts";

describe("lists in place of watches", () => {
  const asked: string[] = [];
  const request = async ({ path }: { path: string }) => {
    asked.push(path);
    const [, name = "one"] = /fieldSelector=metadata.name%3D(\w+)/.exec(path) ?? [];
    if (name === "denied") throw new ApiError("LIST", 403, "Forbidden");
    return { metadata: { resourceVersion: "1" }, items: [{ metadata: { name, uid: name, resourceVersion: "1" } }] };
  };
  const newLists = () => new LiveLists(fakeTransport({ request: request as never, lines: () => assert.fail() }));
  const secretsIn = (lists: LiveLists) =>
    lists
      .list("", { identity: "me", resource: SECRETS, namespace: "team", labels: "", names: undefined })
      .members.map(({ name }) => name);

  it("are complete for a reader that waits while another one requests them, and are requested once", async () => {
    const lists = newLists();
    const isRead = Promise.withResolvers<void>();
    const slow = lists.settled(async () => {
      const names = secretsIn(lists);
      await isRead.promise;
      return names;
    });
    assert.deepEqual(await lists.settled(() => secretsIn(lists)), ["one"]);
    isRead.resolve();
    assert.deepEqual(await slow, ["one"]);
    assert.equal(asked.length, 1);
  });

  it("show single objects, and why one can't be read", async () => {
    const lists = newLists();
    const found = await lists.settled(() =>
      ["two", "denied"].map((name) =>
        lists.get("", { identity: "me", ref: { resource: CONFIGMAPS, namespace: "team", name } }),
      ),
    );
    assert.deepEqual(
      found.map(({ phase, version }) => [phase, version?.uid]),
      [
        ["synced", "two"],
        ["failed", undefined],
      ],
    );
  });
});
