/** Answers that a healthy API server does not give. The controller continues after each, and writes nothing twice. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { auditLog } from "../controller/shared.ts";
import type { HttpProxy } from "./http-proxy.ts";
import { startBehindHttpProxy, survivesRefusals } from "./http-trouble.ts";
import type { ProxiedController } from "./proxied-controller.ts";

describe("an API server", function () {
  this.timeout("2m");
  let proxied: ProxiedController<HttpProxy>;

  before(async () => {
    proxied = await startBehindHttpProxy(40);
  });
  after(() => proxied?.stop());

  for (const [code, reason, counted] of [
    [500, "InternalError", "unavailable"],
    [410, "Expired", "expired"],
  ] as const) {
    it(`that ends watches with an ERROR event of ${code}: the controller watches again at once, and writes nothing`, async () => {
      const [mark, restarts] = [await auditLog().mark(), await proxied.restarts(counted)];
      const broken = proxied.proxy.breakWatches(code, reason);
      assert.ok(broken > 0);
      await eventually(async () => assert.equal(await proxied.restarts(counted), restarts + broken));
      await proxied.isWell();
      const writes = await proxied.fleet.writesSince(mark);
      assert.deepEqual([...writes.values()], Array(proxied.fleet.names.length).fill(1));
    });
  }

  for (const code of [500, 403]) {
    it(`that refuses watches with ${code}: the controller retries until they start, and writes each change once`, async () => {
      const breaksWith = code === 403 ? 410 : code;
      await survivesRefusals(proxied, (path) => path.includes("watch=true"), code, breaksWith);
    });
  }
});
