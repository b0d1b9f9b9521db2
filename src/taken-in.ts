/** The targets of a binding come in; whether their own controllers have taken in what was written goes out, and if not, which has not. */
import type { Client } from "./kube/client.ts";
import { type Access, findObject } from "./kube/find.ts";
import type { Identity } from "./kube/identity.ts";
import { attempt, READ_VERBS } from "./kube/refusal.ts";
import { isObject } from "./model/json.ts";
import { describeObject, type KubeObject, type ObjectRef } from "./model/kube-object.ts";
import { Problem } from "./model/problem.ts";
import type { Hold, RolloutSpec } from "./model/rollout.ts";
import { sideBySide } from "./queue/side-by-side.ts";

type WaitFor = NonNullable<RolloutSpec["waitForTargets"]>;

/** As they are now: a stream shows no status. Whatever changes it calls the binding again. */
export async function notTakenIn(
  client: Client,
  identity: Identity,
  targets: readonly ObjectRef[],
  waitFor: WaitFor,
): Promise<Hold | undefined> {
  const whys = await sideBySide(targets, async (ref) => {
    const access: Access = { client, identity, ref, verbs: READ_VERBS };
    const found = await attempt(findObject(access));
    if (found instanceof Problem) return found.message;
    const why = found === undefined ? "is not there" : whyNot(found, waitFor);
    return why && `${describeObject(ref.resource.kind, ref.namespace, ref.name)} ${why}`;
  });
  const why = whys.find((each) => each !== undefined);
  return why === undefined ? undefined : { reason: "NotTakenIn", message: `spec.rollout.waitForTargets: ${why}` };
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
