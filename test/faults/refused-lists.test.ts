/** An API server in trouble that answers neither lists nor watches: the controller asks until it does. */
import type { HttpProxy } from "./http-proxy.ts";
import { startBehindHttpProxy, survivesRefusals } from "./http-trouble.ts";
import type { ProxiedController } from "./proxied-controller.ts";

describe("an API server that", function () {
  this.timeout("2m");
  let proxied: ProxiedController<HttpProxy>;

  before(async () => {
    proxied = await startBehindHttpProxy(40);
  });
  after(() => proxied?.stop());

  it("refuses to list and watch with 500 is asked again until it does, and what changed meanwhile is written once", () =>
    survivesRefusals(proxied, (path) => path.includes("watch=true") || path.includes("limit="), 500));
});
