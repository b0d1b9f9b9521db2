/** Finds out which controllers of a binding's targets have not observed the written values yet. */
import type { RolloutSpec } from "../../api/rollout.ts";
import { at, conditionIn } from "../../apimachinery/fields.ts";
import { describeObject, type KubeObject, type ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { attempt, WRITE_VERBS } from "../../kube/access-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists, type ObjectAccess } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import { mapConcurrent } from "../../workqueue/map-concurrent.ts";
import type { RolloutBlock } from "../types.ts";
import type { UnsyncedTargets } from "./unsynced-targets.ts";

type WaitFor = NonNullable<RolloutSpec["waitForTargets"]>;

/** The interval of retries if a target can't be read. */
const READ_AGAIN_MS = 5_000;

/** A target that is waited for. */
export interface AwaitedTarget {
  ref: ObjectRef;
  /** It is in one of many namespaces: only the workloads of that namespace wait for it. */
  isApart: boolean;
}

/** Reads the targets, because watches don't show their status. A change of a target requeues the binding. */
export async function targetsNotObserved(
  client: Pick<Client, "get">,
  identity: Identity,
  targets: readonly AwaitedTarget[],
  waitFor: WaitFor,
): Promise<UnsyncedTargets> {
  let everywhere: RolloutBlock | undefined;
  const namespaces = new Map<string, string>();
  const look = async ({ ref, isApart }: AwaitedTarget) => {
    const { namespace } = ref;
    if (everywhere !== undefined || (isApart && namespaces.has(namespace ?? ""))) return;
    const access: ObjectAccess<"get"> = { client, identity, ref, verbs: WRITE_VERBS };
    const found = await attempt(getIfExists(access));
    const why = found instanceof Problem ? found.message : notObserved(ref, found, waitFor);
    if (why === undefined) return;
    const message = `spec.rollout.waitForTargets: ${why}`;
    if (isApart && namespace !== undefined) namespaces.set(namespace, message);
    // No watch shows when the target can be read again.
    const later = found instanceof Problem ? { requeueAfterMs: READ_AGAIN_MS } : {};
    if (!isApart) everywhere ??= { reason: "TargetsNotReady", message, ...later };
  };
  // A kind without a status has no controller that could report anything.
  const observable = targets.filter(({ ref }) => ref.resource.hasStatus);
  await mapConcurrent(observable, look);
  return { everywhere, namespaces };
}

function notObserved({ resource, namespace, name }: ObjectRef, found: KubeObject | undefined, waitFor: WaitFor) {
  const why = found === undefined ? "does not exist" : whyNot(found, waitFor);
  return why && `${describeObject(resource.kind, namespace, name)} ${why}`;
}

/** A controller may write anything into a status, so only numbers and the fixed words of conditions are repeated. */
function whyNot({ metadata, status }: KubeObject, { condition: type }: WaitFor): string | undefined {
  const { generation = 0 } = metadata;
  const observed = Number(at(status, "observedGeneration"));
  if (observed < generation) return `is at generation ${generation}, and its controller has observed ${observed}`;
  if (type === undefined)
    return Number.isNaN(observed)
      ? "has no status.observedGeneration; set waitForTargets.condition to one of its conditions"
      : undefined;
  const condition = conditionIn(status, type);
  if (condition === undefined) return `has no condition ${type} yet`;
  if (Number(condition["observedGeneration"]) < generation)
    return `has the condition ${type} for an earlier generation`;
  return condition["status"] === "True" ? undefined : `has the condition ${type}, and it is not True`;
}
