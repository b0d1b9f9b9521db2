/** The targets of a binding come in; whether their own controllers have taken in what was written goes out, and if not, which has not. */

import type { Hold, RolloutSpec } from "../../api/rollout.ts";
import { isObject } from "../../apimachinery/json.ts";
import { describeObject, type KubeObject, type ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { attempt, READ_VERBS } from "../../kube/access-error.ts";
import type { Client } from "../../kube/client.ts";
import { type Access, findObject } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import { sideBySide } from "../../workqueue/map-concurrent.ts";

type WaitFor = NonNullable<RolloutSpec["waitForTargets"]>;

/** When a target is read again that could not be. */
const READ_AGAIN_MS = 5_000;

/** As they are now: a stream shows no status. Whatever changes it calls the binding again. The first is told that has not. */
export async function notTakenIn(
  client: Client,
  identity: Identity,
  targets: readonly ObjectRef[],
  waitFor: WaitFor,
): Promise<Hold | undefined> {
  let hold: Hold | undefined;
  const told = (why: string): Hold => ({ reason: "NotTakenIn", message: `spec.rollout.waitForTargets: ${why}` });
  const look = async (ref: ObjectRef) => {
    const access: Access = { client, identity, ref, verbs: READ_VERBS };
    const found = await attempt(findObject(access));
    // Nothing tells when that is over.
    if (found instanceof Problem) hold ??= { ...told(found.message), againMs: READ_AGAIN_MS };
    const why = found === undefined ? "is not there" : found instanceof Problem ? undefined : whyNot(found, waitFor);
    if (why !== undefined) hold ??= told(`${describeObject(ref.resource.kind, ref.namespace, ref.name)} ${why}`);
  };
  // A kind without a status has no controller that could say anything.
  const telling = targets.filter(({ resource }) => resource.hasStatus);
  await sideBySide(telling, look, () => hold === undefined);
  return hold;
}

/** What a controller says of itself is as it pleases: only numbers and the fixed words of conditions are repeated. */
function whyNot(
  { metadata: { generation = 0 }, status }: KubeObject,
  { condition: type }: WaitFor,
): string | undefined {
  const { observedGeneration, conditions } = isObject(status) ? status : {};
  const observed = Number(observedGeneration);
  if (observed < generation) return `is at generation ${generation}, and its controller has seen ${observed}`;
  if (type === undefined)
    return Number.isNaN(observed)
      ? "does not tell by status.observedGeneration what its controller has seen; name one of its conditions"
      : undefined;
  const condition = Array.isArray(conditions)
    ? conditions.filter(isObject).find((each) => each["type"] === type)
    : undefined;
  if (condition === undefined) return `has no condition ${type} yet`;
  if (Number(condition["observedGeneration"]) < generation) return `has the condition ${type} of an earlier generation`;
  return condition["status"] === "True" ? undefined : `has the condition ${type}, and it is not True`;
}
