/** The targets of a binding come in; whether their own controllers have taken in what was written goes out, and if not, which has not. */
import type { RolloutSpec } from "../../api/rollout.ts";
import { at, conditionIn } from "../../apimachinery/fields.ts";
import { describeObject, type KubeObject, type ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { attempt, READ_VERBS } from "../../kube/access-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists, type ObjectAccess } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import { mapConcurrent } from "../../workqueue/map-concurrent.ts";
import type { RolloutBlock } from "../types.ts";

type WaitFor = NonNullable<RolloutSpec["waitForTargets"]>;

/** When a target is read again that could not be. */
const READ_AGAIN_MS = 5_000;

/** As they are now: a stream shows no status. Whatever changes it calls the binding again. The first is told that has not. */
export async function targetsNotObserved(
  client: Pick<Client, "get">,
  identity: Identity,
  targets: readonly ObjectRef[],
  waitFor: WaitFor,
): Promise<RolloutBlock | undefined> {
  let block: RolloutBlock | undefined;
  const blocked = (why: string) => ({ reason: "TargetsNotReady", message: `spec.rollout.waitForTargets: ${why}` });
  const look = async (ref: ObjectRef) => {
    if (block !== undefined) return;
    const access: ObjectAccess<"get"> = { client, identity, ref, verbs: READ_VERBS };
    const found = await attempt(getIfExists(access));
    // Nothing tells when that is over.
    if (found instanceof Problem) block ??= { ...blocked(found.message), requeueAfterMs: READ_AGAIN_MS };
    const why = found === undefined ? "is not there" : found instanceof Problem ? undefined : whyNot(found, waitFor);
    if (why !== undefined) block ??= blocked(`${describeObject(ref.resource.kind, ref.namespace, ref.name)} ${why}`);
  };
  // A kind without a status has no controller that could say anything.
  const observable = targets.filter(({ resource }) => resource.hasStatus);
  await mapConcurrent(observable, look);
  return block;
}

/** What a controller says of itself is as it pleases: only numbers and the fixed words of conditions are repeated. */
function whyNot({ metadata, status }: KubeObject, { condition: type }: WaitFor): string | undefined {
  const { generation = 0 } = metadata;
  const observed = Number(at(status, "observedGeneration"));
  if (observed < generation) return `is at generation ${generation}, and its controller has seen ${observed}`;
  if (type === undefined)
    return Number.isNaN(observed)
      ? "does not tell by status.observedGeneration what its controller has seen; name one of its conditions"
      : undefined;
  const condition = conditionIn(status, type);
  if (condition === undefined) return `has no condition ${type} yet`;
  if (Number(condition["observedGeneration"]) < generation) return `has the condition ${type} of an earlier generation`;
  return condition["status"] === "True" ? undefined : `has the condition ${type}, and it is not True`;
}
