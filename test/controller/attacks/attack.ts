/** What a tenant with the permissions of an admin of one namespace does to stop the controller for others. */
import type { TestNamespace } from "../test-namespace.ts";

export interface Attack {
  /** The tenant, as part of a test's title: "a tenant with 100 ConfigMaps of 60,000 keys". */
  tenant: string;
  /**
   * Installs what the platform has for its tenants, such as a kind or a server. Returns what the configuration file of the controller has
   * beside its defaults.
   */
  prepare?(tenant: TestNamespace): Promise<object | undefined>;
  /**
   * Makes the objects in the tenant's namespace, which has no account `inlay` and no permissions yet. `scale` is 1 for the size that stopped
   * a controller without limits, and less for a quick run.
   */
  launch(tenant: TestNamespace, scale: number): Promise<void>;
  /** Asserts what the tenant sees. It may be called once the controller had time to reconcile. */
  isReported?(tenant: TestNamespace, scale: number): Promise<void>;
  /** Removes what `prepare` installed. */
  end?(tenant: TestNamespace): Promise<void>;
}

/** A number of objects of an attack at a scale. */
export const sized = (full: number, scale: number): number => Math.max(1, Math.ceil(full * scale));
