/** A controller behind a proxy that answers in place of the API server, and a test of refused requests. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { auditLog } from "../controller/shared.ts";
import { HttpProxy } from "./http-proxy.ts";
import { ProxiedController } from "./proxied-controller.ts";

/** Starts the proxy and the controller with so many bindings, as `ProxiedController.start` does. */
export async function startBehindHttpProxy(count: number): Promise<ProxiedController<HttpProxy>> {
  const { url } = controlPlane();
  return ProxiedController.through(await HttpProxy.start(url, await controlPlane().servingIdentity()), count);
}

/**
 * Refuses the selected requests with a status, and ends open watches with a code, while all Secrets change. The controller
 * reports that it is not ready. When requests succeed again, it recovers, and writes each target once.
 */
export async function survivesRefusals(
  proxied: ProxiedController<HttpProxy>,
  isRefused: (path: string) => boolean,
  status: number,
  code = status,
): Promise<void> {
  const { fleet, proxy } = proxied;
  const [mark, before] = [await auditLog().mark(), await fleet.generations()];
  proxy.refuse(isRefused, status);
  proxy.breakWatches(code, "Trouble");
  await eventually(async () => assert.notEqual(await proxied.readiness(), "ok\n"), 30_000);
  await fleet.rotate();
  proxy.resume();
  await fleet.inStep(45_000);
  await proxied.writtenOnce(mark, before);
  await proxied.isWell(30_000);
}
