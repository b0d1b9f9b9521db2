/** Answers that a healthy API server does not give: whatever it says, the controller goes on, and writes nothing twice. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { auditLog } from "../controller/shared.ts";
import { Behind } from "./behind.ts";
import { HttpProxy } from "./http-proxy.ts";

const RETRY_AFTER_S = 2;

describe("an API server that", function () {
  this.timeout("2m");
  let behind: Behind<HttpProxy>;

  before(async () => {
    const plane = controlPlane();
    behind = await Behind.behind(await HttpProxy.start(plane.url, await plane.servingIdentity()), 40);
  });
  after(() => behind?.stop());

  for (const [code, reason, counted] of [
    [500, "InternalError", "unavailable"],
    [410, "Expired", "expired"],
  ] as const) {
    it(`breaks watches off by an ERROR of ${code} is watched anew at once, and nothing is written for it`, async () => {
      const [mark, restarts] = [await auditLog().mark(), await behind.restarts(counted)];
      const broken = behind.proxy.breakWatches(code, reason);
      assert.ok(broken > 0);
      await eventually(async () => assert.equal(await behind.restarts(counted), restarts + broken));
      await behind.isWell();
      const writes = await behind.fleet.writesSince(mark);
      assert.deepEqual([...writes.values()], Array(behind.fleet.names.length).fill(1));
    });
  }

  for (const [code, verbs] of [
    [500, "watch"],
    [500, "list and watch"],
    [403, "watch"],
  ] as const) {
    it(`refuses to ${verbs} with ${code} is asked again until it does, and what changed meanwhile is written once`, async () => {
      const { fleet, proxy } = behind;
      const [mark, before] = [await auditLog().mark(), await fleet.generations()];
      const isWatch = (path: string) => path.includes("watch=true");
      const isList = (path: string) => path.includes("limit=");
      proxy.refuse((path) => isWatch(path) || (verbs !== "watch" && isList(path)), code);
      proxy.breakWatches(code === 403 ? 410 : code, "Trouble");
      await eventually(async () => assert.notEqual(await behind.readiness(), "ok\n"), 30_000);
      await fleet.rotate();
      proxy.resume();
      await fleet.inStep(45_000);
      await behind.writtenOnce(mark, before);
      await behind.isWell(30_000);
    });
  }

  for (const [what, methods] of [
    ["reads and watches", ["GET"]],
    ["writes", ["PATCH", "PUT"]],
  ] as const) {
    it(`has no place for ${what} is asked again, and no sooner than it says`, async () => {
      const { fleet, proxy } = behind;
      const [mark, before] = [await auditLog().mark(), await fleet.generations()];
      proxy.refuse((_, method) => methods.some((each) => each === method), 429, RETRY_AFTER_S);
      await fleet.rotate();
      await eventually(() => assert.ok(proxy.refusals.length > 0));
      if (methods[0] === "GET") proxy.breakWatches(500, "Trouble");
      await eventually(() => {
        const again = pausesIn(proxy);
        for (const kind of methods[0] === "GET" ? ["watch=true", "/secrets/"] : ["/harborclusters/"])
          assert.ok(again.some(({ what: asked }) => asked.includes(kind)));
      });
      assert.deepEqual(
        pausesIn(proxy).filter(({ seconds }) => seconds < RETRY_AFTER_S),
        [],
      );
      proxy.resume();
      await fleet.inStep(45_000);
      await behind.writtenOnce(mark, before);
      await behind.isWell(30_000);
    });
  }
});

/** How long it was until what was refused was asked again. */
function pausesIn({ refusals }: HttpProxy): { what: string; seconds: number }[] {
  const last = new Map<string, number>();
  return refusals.flatMap(({ what, at }) => {
    const before = last.get(what);
    last.set(what, at);
    return before === undefined ? [] : [{ what, seconds: (at - before) / 1000 }];
  });
}
