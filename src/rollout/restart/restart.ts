/**
 * The restarts that were decided come in; each is written, or shared with another binding's, and told of. What could not be
 * comes back, and why; `stale` is what is not any more what it was decided by.
 */

import { bindingKey, type SecretBinding } from "../../api/binding.ts";
import type { Dependent } from "../../api/rollout.ts";
import { FieldPath } from "../../apimachinery/field-path.ts";
import { apiVersionOf, describeObject, isOlder, type ObjectMeta, type Version } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { attempt } from "../../kube/access-error.ts";
import type { Identity } from "../../kube/identity.ts";
import type { Parts } from "../../parts.ts";
import { isJob } from "../../workloads/job-copy.ts";
import { sideBySide } from "../../workqueue/map-concurrent.ts";
import { unbudgeted } from "../decide/disruption-budgets.ts";
import type { Decided } from "../decide/engine.ts";
import { type Known, writtenFor } from "../digest/values.ts";
import type { RollingRun } from "../discover/dependents.ts";
import { unbudgetedEvent, unprobedEvent, workloadEvent } from "../event-messages.ts";
import { recreate } from "./recreate-job.ts";
import { type Recreated, recreated } from "./recreated-jobs.ts";
import { Stamps } from "./shared-stamps.ts";
import { stamp } from "./stamp.ts";

/** What is known of the restarts of a binding. */
export interface Restarted {
  /** When the sources were as they are now, and every target held their values, by the monotonic clock. */
  readyAt: number;
  /** What stamps made of workloads, by their uids. */
  stamped: Map<string, Stamped>;
  /** The Jobs that were made anew, by the uids of the former ones. */
  recreated: Map<string, Recreated>;
  /** Those of which it was said that nobody knows when they are ready. */
  warned: Set<string>;
  /** Those of which it was asked whether a PodDisruptionBudget selects their pods. */
  asked: Set<string>;
}

interface Stamped extends Version {
  text: string;
}

/** Whether a workload is shown as our last stamp left it, or later. What is written into metadata makes no other generation. */
export function isSeenSince({ version, workload, stampAt }: Dependent, stamped: Stamped | undefined): boolean {
  if (stamped === undefined) return true;
  const { generation = 0 } = stamped;
  if (!stampAt.startsWith(METADATA)) return (version.generation ?? generation) >= generation;
  return workload.restart === stamped.text || !isOlder(version, stamped);
}

const METADATA = FieldPath.parse("metadata");

export class Stamping {
  readonly #parts: Parts;
  readonly #stamps = new Stamps();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async stamp(
    { binding, identity, spec }: RollingRun,
    { stamps, status }: Decided,
    known: Known,
    restarted: Restarted,
  ): Promise<Map<Dependent, Problem | "stale">> {
    const { client, propagation } = this.#parts;
    const key = bindingKey(binding);
    const unwritten = new Map<Dependent, Problem | "stale">();
    const made = new Map<Dependent, ObjectMeta>();
    await sideBySide(stamps, async (ordered) => {
      const { dependent, causes } = ordered;
      const { uid } = dependent.version;
      const text = writtenFor(spec, ordered, status, known);
      const sharing = { by: key, place: String(dependent.stampAt), readyAt: restarted.readyAt };
      const isAnew = isJob(dependent.ref.resource);
      const mark = { annotation: spec.stamp.annotation, stamp: ordered.stamp };
      const write = () =>
        isAnew ? recreate(client, identity, dependent.ref, uid, mark) : stamp(client, identity, dependent, text);
      const answer = await attempt(this.#stamps.write(uid, sharing, write));
      if (answer instanceof Problem || answer === "stale") return void unwritten.set(dependent, answer);
      const { generation, resourceVersion } = answer.metadata;
      restarted.stamped.set(uid, { uid, generation, resourceVersion, text });
      if (isAnew) restarted.recreated.set(uid, recreated(dependent, answer, ordered.stamp));
      propagation.wrote(key);
      // It may have stood there already: what was cut off had arrived.
      if (resourceVersion !== dependent.version.resourceVersion)
        this.#tell(binding, dependent, answer.metadata, causes, restarted);
      made.set(dependent, answer.metadata);
    });
    if (!spec.requireDisruptionBudget) await this.#tellUnbudgeted(identity, made, restarted.asked);
    return unwritten;
  }

  /** Of each workload only once. Where it can't be known, there is no reason for a warning. */
  async #tellUnbudgeted(
    identity: Identity,
    made: ReadonlyMap<Dependent, ObjectMeta>,
    asked: Set<string>,
  ): Promise<void> {
    const { client, events } = this.#parts;
    const due = [...made.keys()].filter(({ workload, version }) => workload.isMany && !asked.has(version.uid));
    for (const { version } of due) asked.add(version.uid);
    const found = await attempt(unbudgeted(client, identity, due));
    for (const dependent of found instanceof Problem ? [] : found)
      events.recordOn(regarding(dependent, made.get(dependent) as ObjectMeta), unbudgetedEvent());
  }

  #tell(
    binding: SecretBinding,
    dependent: Dependent,
    metadata: ObjectMeta,
    causes: readonly string[],
    { warned }: Restarted,
  ): void {
    const { events, log, rollouts } = this.#parts;
    const { ref, workload } = dependent;
    const where = describeObject(ref.resource.kind, ref.namespace, ref.name);
    log.info({ binding: bindingKey(binding), workload: where, changed: causes }, "restarted");
    rollouts.restarted();
    events.recordOn(regarding(dependent, metadata), workloadEvent(binding, causes));
    if (workload.unprobed.length === 0 || warned.has(metadata.uid)) return;
    warned.add(metadata.uid);
    events.recordOn(regarding(dependent, metadata), unprobedEvent(workload.unprobed));
  }
}

const regarding = ({ ref: { resource } }: Dependent, metadata: ObjectMeta) => ({
  apiVersion: apiVersionOf(resource),
  kind: resource.kind,
  metadata,
});
