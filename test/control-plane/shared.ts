/** The control plane that all tests of a run share. setup.ts sets it before the first test that needs it. */
import type { ControlPlane } from "./control-plane.ts";

let shared: ControlPlane | undefined;

/** Call this in a hook or a test: the control plane does not exist yet while test files are loaded. */
export function controlPlane(): ControlPlane {
  if (shared === undefined) throw new Error("only a test outside of test/unit has a control plane");
  return shared;
}

/** Only setup.ts calls the following functions. */
export function share(controlPlane: ControlPlane): void {
  shared = controlPlane;
}

export async function stopShared(): Promise<void> {
  await shared?.stop();
}
