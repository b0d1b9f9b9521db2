/** Waits until the controller has processed everything that happened before, by a later restart of another workload. */
import { secretText } from "./leak-detector.ts";
import { loggedUntilNow } from "./requests.ts";
import type { TestNamespace } from "./test-namespace.ts";
import { PULSE, Workloads } from "./workloads.ts";

/**
 * Creates a Deployment without pods in the team's namespace, and a binding that restarts it as the same account. Call the
 * returned function to wait until the controller has processed all earlier changes there to Secrets, Deployments and bindings:
 * a watch delivers changes in order, and each call makes a later change of each kind. The account needs `rolloutRules`.
 */
export async function rolloutPulse(team: TestNamespace, controller = team.controller): Promise<() => Promise<void>> {
  const shop = new Workloads(team);
  const rotate = () => team.secret(PULSE, { token: secretText("pulse") });
  if (!(await team.api.find(team.bindingPath(PULSE)))) {
    await rotate();
    await shop.deploy({ [PULSE]: { env: { [PULSE]: ["token"] }, replicas: 0 } });
    await team.bind(PULSE, { sources: [{ secret: { name: PULSE } }], rollout: { consumersOf: [PULSE] } });
  }
  let { revision } = (await shop.until(PULSE, "RolledOut")).status.rollout;
  return async () => {
    revision++;
    // RolledOut is reported for the new generation only after the watch of bindings has delivered it,
    await team.rebind(PULSE, { rollout: { maxConcurrent: revision } });
    await rotate();
    // and only after the watch of Deployments has delivered that this one has rolled out.
    await shop.rolledOut(PULSE, revision);
    await controller.idle();
    await loggedUntilNow(team);
  };
}

/** From now on, the controller restarts no workload for an earlier change. */
export async function rolloutBarrier(team: TestNamespace, controller = team.controller): Promise<void> {
  const pulse = await rolloutPulse(team, controller);
  await pulse();
}
