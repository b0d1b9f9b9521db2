/**
 * The one control plane that all tests of a run use that need one: setup.ts puts it in before the first of
 * them, and they take it out.
 */
import type { ControlPlane } from "./control-plane.ts";

let shared: ControlPlane | undefined;

/** Call it in a hook or a test: while spec files are loaded, it is not there yet. */
export function controlPlane(): ControlPlane {
  if (shared === undefined) throw new Error("only a test outside of test/unit has a control plane");
  return shared;
}

/** For setup.ts alone, as is what follows. */
export function share(controlPlane: ControlPlane): void {
  shared = controlPlane;
}

export async function stopShared(): Promise<void> {
  await shared?.stop();
}
