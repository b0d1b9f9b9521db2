/** An API server that sends Retry-After. The controller does not retry sooner, and writes each change once. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { auditLog } from "../controller/shared.ts";
import type { HttpProxy } from "./http-proxy.ts";
import { startBehindHttpProxy } from "./http-trouble.ts";
import type { ProxiedController } from "./proxied-controller.ts";

const RETRY_AFTER_S = 2;

describe("an API server", function () {
  this.timeout("2m");
  let proxied: ProxiedController<HttpProxy>;

  before(async () => {
    proxied = await startBehindHttpProxy(40);
  });
  after(() => proxied?.stop());

  for (const [what, methods] of [
    ["reads and watches", ["GET"]],
    ["writes", ["PATCH", "PUT"]],
  ] as const) {
    it(`that refuses ${what} with Retry-After receives no retry sooner`, async () => {
      const { fleet, proxy } = proxied;
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
      await proxied.writtenOnce(mark, before);
      await proxied.isWell(30_000);
    });
  }
});

/** How long each refused request waited until its retry. */
function pausesIn({ refusals }: HttpProxy): { what: string; seconds: number }[] {
  const last = new Map<string, number>();
  return refusals.flatMap(({ what, at }) => {
    const before = last.get(what);
    last.set(what, at);
    return before === undefined ? [] : [{ what, seconds: (at - before) / 1000 }];
  });
}
