/** A plan and a decision come in; one server-side apply goes to the API server, and the version that it made comes out. */
import { isStatus } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import type { Identity } from "../kube/identity.ts";
import { refusal, WRITE_VERBS } from "../kube/refusal.ts";
import { CONTROLLER_MANAGER } from "../model/field-manager.ts";
import type { FieldPath, Segment } from "../model/field-path.ts";
import type { JsonObject, KubeObject, ObjectRef } from "../model/kube-object.ts";
import type { Plan, PlannedField } from "../model/plan.ts";
import { Problem } from "../model/problem.ts";
import { conflict, type Decision, type Desired } from "./decide.ts";
import { immutableProblem } from "./immutable.ts";
import { giveUp, onlyTo } from "./release.ts";

/** The target as a binding's account sees it. Throws Problem. */
export async function readTarget(client: Client, identity: Identity, ref: ObjectRef): Promise<KubeObject> {
  try {
    return await client.get(identity, ref);
  } catch (error) {
    if (isStatus(error, 404) && error.reason === "NotFound") throw targetNotFound(ref);
    throw refusal(error, { identity, ref, verbs: WRITE_VERBS }, "get");
  }
}

/**
 * Writes all fields of the plan in one request, and what is carried, to the very version that was read: nothing is ever
 * created, and a write that comes late, from a process that was paused, is not taken. `stale` when the object changed in
 * between. Throws Problem.
 */
export async function writeTarget(
  client: Client,
  identity: Identity,
  ref: ObjectRef,
  desired: Desired,
  decision: Decision,
  live: KubeObject,
): Promise<KubeObject | "stale"> {
  const { fieldManager, plan } = desired;
  const leaves = leavesOf([...plan.fields, ...decision.carried]);
  try {
    const strays = giveUp(live, fieldManager, decision.strays);
    const { uid, resourceVersion } = (
      strays.length > 0 ? await client.jsonPatch(identity, ref, [onlyTo(live), ...strays], CONTROLLER_MANAGER) : live
    ).metadata;
    leaves["metadata"] = { ...(leaves["metadata"] as JsonObject), resourceVersion };
    return await client.apply(identity, ref, uid, leaves, {
      fieldManager,
      force: decision.force,
    });
  } catch (error) {
    if (isStatus(error, 409) && error.conflicts.length > 0) {
      throw conflict(
        error.conflicts.flatMap(({ manager, path }) => contested(plan, path).map((ours) => ({ manager, path: ours }))),
      );
    }
    if (isStatus(error, 409)) return "stale";
    // So it is answered when an object was made anew under the name, too.
    if (isStatus(error, 422) && (await readTarget(client, identity, ref)).metadata.uid !== live.metadata.uid)
      return "stale";
    const paths = plan.fields.map(({ path }) => path);
    throw immutableProblem(error, paths) ?? refusal(error, { identity, ref, verbs: WRITE_VERBS }, "patch");
  }
}

/** Our own paths that a conflict is about. The server's spelling of it is not passed on: it can hold values of lists. */
function contested({ fields }: Plan, theirs: string): string[] {
  const paths = fields.map(({ path }) => path);
  const meant = paths.filter(({ segments }) => {
    const ours = segments.map((segment) => `.${segment.kind === "index" ? segment.index : segment.key}`).join("");
    return (
      ours === theirs || ours.startsWith(`${theirs}.`) || theirs.startsWith(`${ours}.`) || theirs.startsWith(`${ours}[`)
    );
  });
  return (meant.length > 0 ? meant : paths).map(String);
}

function targetNotFound({ resource, namespace, name }: ObjectRef): Problem {
  const where = namespace === undefined ? "" : ` in namespace ${namespace}`;
  return new Problem(
    "TargetNotFound",
    `there is no ${resource.kind} ${name}${where}; the binding waits for it and never creates it`,
  );
}

/** The smallest object that holds the fields. Nothing is inherited, so no key means anything by itself. */
function leavesOf(fields: readonly PlannedField[]): JsonObject {
  const root = emptyObject();
  for (const { path, value } of fields) {
    let at = root;
    for (const segment of path.parent?.segments ?? []) {
      const key = keyOf(path, segment);
      at[key] ??= emptyObject();
      at = at[key] as JsonObject;
    }
    at[keyOf(path, path.segments.at(-1))] = value.reveal();
  }
  return root;
}

const emptyObject = (): JsonObject => Object.create(null);

function keyOf(path: FieldPath, segment: Segment | undefined): string {
  if (segment?.kind !== "key") throw new TypeError(`${path} goes into a list`);
  return segment.key;
}
