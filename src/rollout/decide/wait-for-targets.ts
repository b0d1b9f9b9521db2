/**
 * Decides which workloads have to wait for the targets of their binding: for those without the new values, and for those whose
 * controllers have not observed the written values yet. A target holds back all workloads; a target in one of many namespaces
 * holds back those of its namespace.
 */
import { isApart, type SecretBinding, type Target } from "../../api/binding.ts";
import type { RolloutSpec } from "../../api/rollout.ts";
import { FieldPath } from "../../apimachinery/field-path.ts";
import { at, conditionIn, numberOf } from "../../apimachinery/fields.ts";
import { firstOf } from "../../apimachinery/name-list.ts";
import {
  describeRef,
  type KubeObject,
  type ObjectRef,
  type Resource,
  type Version,
} from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { attempt, WRITE_VERBS } from "../../kube/access-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists, type ObjectAccess } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import type { Schemas } from "../../kube/schemas.ts";
import { schemaIn } from "../../transform/schema-check.ts";
import { mapConcurrent } from "../../workqueue/map-concurrent.ts";
import type { RolloutBlock } from "../types.ts";

type WaitFor = NonNullable<RolloutSpec["waitForTargets"]>;

/** The interval of retries if a target can't be read. */
const READ_AGAIN_MS = 5_000;

/** A target that is waited for. */
export interface AwaitedTarget {
  ref: ObjectRef;
  /** It is in one of many namespaces: only the workloads of that namespace wait for it. */
  isApart: boolean;
  /** The first version in which it has the present values, if that is known. */
  written?: Version | undefined;
}

const STATUS = FieldPath.parse("status");

/**
 * The kinds whose schema has no status, such as ConfigMap: no controller can report anything there. A kind may have a status
 * without the subresource.
 */
export async function kindsWithoutStatus(
  schemas: Pick<Schemas, "of">,
  targets: readonly AwaitedTarget[],
): Promise<ReadonlySet<Resource>> {
  const unsure = new Set(targets.flatMap(({ ref: { resource } }) => (resource.hasStatus ? [] : resource)));
  const without = await mapConcurrent([...unsure], async (resource) => {
    // If the schema can't be read, the kind may have a status.
    const schema = await schemas.of(resource).catch(() => undefined);
    return schema !== undefined && schemaIn(schema.root, schema.resolve)(STATUS) === undefined ? [resource] : [];
  });
  return new Set(without.flat());
}

/** How many kinds a message names. */
const MAX_NAMED = 3;

/** For users: what `waitForTargets` can't wait for. */
export function unseenNote(without: ReadonlySet<Resource>): string | undefined {
  const kinds = [...new Set([...without].map(({ kind }) => kind))].sort();
  if (kinds.length === 0) return undefined;
  return `spec.rollout.waitForTargets did not wait for the ${firstOf(kinds, MAX_NAMED)} among the targets, because such an object has no status`;
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
  const look = async ({ ref, isApart, written }: AwaitedTarget) => {
    const { namespace } = ref;
    if (everywhere !== undefined || (isApart && namespaces.has(namespace ?? ""))) return;
    const access: ObjectAccess<"get"> = { client, identity, ref, verbs: WRITE_VERBS };
    const found = await attempt(getIfExists(access));
    const why = found instanceof Problem ? found.message : notObserved(ref, found, waitFor, written);
    if (why === undefined) return;
    const message = `spec.rollout.waitForTargets: ${why}`;
    if (isApart && namespace !== undefined) namespaces.set(namespace, message);
    // No watch shows when the target can be read again.
    const later = found instanceof Problem ? { requeueAfterMs: READ_AGAIN_MS } : {};
    if (!isApart) everywhere ??= { reason: "TargetsNotReady", message, ...later };
  };
  await mapConcurrent(targets, look);
  return { everywhere, namespaces };
}

function notObserved(ref: ObjectRef, found: KubeObject | undefined, waitFor: WaitFor, written: Version | undefined) {
  const why = found === undefined ? "does not exist" : whyNot(found, ref.resource, waitFor, written);
  return why && `${describeRef(ref)} ${why}`;
}

/**
 * A controller may write anything into a status, so only numbers and the fixed words of conditions are repeated. Without a status
 * subresource, each write of the status increments the generation, so the generation of the present values counts.
 */
function whyNot(
  { metadata, status }: KubeObject,
  { hasStatus }: Resource,
  { condition: type }: WaitFor,
  written: Version | undefined,
): string | undefined {
  const { generation = 0 } = metadata;
  const known = hasStatus || written?.uid !== metadata.uid ? undefined : written.generation;
  const awaited = known ?? generation;
  const observed = numberOf(at(status, "observedGeneration"));
  const also = hasStatus || known !== undefined ? "" : NO_SUBRESOURCE;
  if (observed < awaited) return `is at generation ${awaited}, and its controller has observed ${observed}${also}`;
  if (type === undefined) {
    if (!Number.isNaN(observed)) return undefined;
    return `has no ${status === undefined ? "status" : "status.observedGeneration"}; set waitForTargets.condition to one of its conditions`;
  }
  const condition = conditionIn(status, type);
  if (condition === undefined) return `has no condition ${type} yet`;
  if (numberOf(condition["observedGeneration"]) < awaited)
    return `has the condition ${type} for an earlier generation${also}`;
  return condition["status"] === "True" ? undefined : `has the condition ${type}, and it is not True`;
}

const NO_SUBRESOURCE =
  " (its kind has no status subresource, so each write of its status increments the generation, and the controller may never report it; change the value, or remove waitForTargets)";

export interface UnsyncedTargets {
  /** Why all workloads wait. */
  everywhere: RolloutBlock | undefined;
  /** Why the workloads of single namespaces wait. */
  namespaces: ReadonlyMap<string, string>;
}

/** An object of a target that was tried, or a part of a target whose objects can't be known. */
export interface Tried {
  target: Pick<Target, "namespaceSelector">;
  namespace?: string | undefined;
  problem?: Problem | undefined;
}

/** `account` is why Inlay can't impersonate the account of the binding. */
export function unsyncedTargets(
  binding: Pick<SecretBinding, "metadata">,
  account: Problem | undefined,
  tried: readonly Tried[],
): UnsyncedTargets {
  let first = account;
  const namespaces = new Map<string, string>();
  for (const { target, namespace = "", problem } of tried) {
    if (problem === undefined) continue;
    const message = `the target in its namespace does not hold the new values yet: ${problem.brief}`;
    if (!isApart(target, namespace || undefined, binding)) first ??= problem;
    else if (!namespaces.has(namespace)) namespaces.set(namespace, message);
  }
  const message = first && "not every target holds the new values yet; see the condition Ready";
  return { everywhere: message === undefined ? undefined : { reason: "TargetsNotSynced", message }, namespaces };
}
