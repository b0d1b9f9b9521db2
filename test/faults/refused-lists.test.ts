/** An API server in trouble that answers neither lists nor watches: the controller asks until it does. */

import type { HttpProxy } from "./http-proxy.ts";
import { startBehindHttp, survivesRefusals } from "./http-trouble.ts";
import type { Behind } from "./proxied-controller.ts";

describe("an API server that", function () {
  this.timeout("2m");
  let behind: Behind<HttpProxy>;

  before(async () => {
    behind = await startBehindHttp(40);
  });
  after(() => behind?.stop());

  it("refuses to list and watch with 500 is asked again until it does, and what changed meanwhile is written once", () =>
    survivesRefusals(behind, (path) => path.includes("watch=true") || path.includes("limit="), 500));
});
