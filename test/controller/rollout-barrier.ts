/** A workload that restarts beside what is tested comes in; when it has, the controller has dealt with all that happened before. */
import { secretText } from "./hunted.ts";
import { loggedUntilNow } from "./requests.ts";
import type { Team } from "./team.ts";
import { PULSE, Workloads } from "./workloads.ts";

/**
 * Makes a Deployment without pods in the team's namespace, and a binding that restarts it as the same account. Call what comes
 * back to wait until the controller has dealt with everything that happened here before, to Secrets, Deployments and bindings:
 * a watch shows changes in their order, and each call makes one of each. The account needs `rolloutRules`.
 */
export async function rolloutPulse(team: Team, controller = team.controller): Promise<() => Promise<void>> {
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
    // The binding says so of its new spec once its stream has shown that.
    await team.rebind(PULSE, { rollout: { maxConcurrent: revision } });
    await rotate();
    // Which takes that the Deployment's own change has been shown as well.
    await shop.rolledOut(PULSE, revision);
    await controller.idle();
    await loggedUntilNow(team);
  };
}

/** After this, no workload restarts for what happened before. */
export async function rolloutBarrier(team: Team, controller = team.controller): Promise<void> {
  const pulse = await rolloutPulse(team, controller);
  await pulse();
}
