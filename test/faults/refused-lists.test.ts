/** An API server that refuses lists and watches for a while. The controller retries until they succeed. */
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

  it("that refuses list and watch with 500: the controller retries until they succeed, and writes each change once", () =>
    survivesRefusals(proxied, (path) => path.includes("watch=true") || path.includes("limit="), 500));
});
