/**
 * Maintains the annotation on Deployments that shows since when a pause-period holds further restarts back. Inlay does not pause
 * the Deployment: the pods of the last restart start at once.
 */
import type { SecretBinding } from "../../api/binding.ts";
import { RELOADER_ACCOUNT } from "../../api/reloader.ts";
import { parseDuration } from "../../apimachinery/duration.ts";
import type { ObjectRef, Version } from "../../apimachinery/objects.ts";
import { refusal, WRITE_VERBS } from "../../kube/access-error.ts";
import { isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import type { Identity } from "../../kube/identity.ts";
import { mapConcurrent } from "../../workqueue/map-concurrent.ts";
import type { WorkResult } from "../../workqueue/work-queue.ts";

/** A Deployment whose annotations name a pause-period, or that has the annotation. */
export interface Pausable {
  ref: ObjectRef;
  version: Pick<Version, "uid">;
  /** The present value of the annotation. */
  noted: string | undefined;
  /** The bindings that restart the Deployment. */
  bindings: readonly SecretBinding[];
}

/** Timers of Node may fire a millisecond early. */
const SLACK_MS = 5;

export class Pauses {
  readonly #client: Pick<Client, "apply">;
  readonly #identity: Identity;
  readonly #key: string;
  /** By the uid of a Deployment, the value of its annotation before the last write or release. */
  readonly #written = new Map<string, string | undefined>();

  /** By the uid of a binding, when its last rollout began. */
  readonly #began = new Map<string, string>();

  /** `key` is the key of the annotation. */
  constructor(client: Pick<Client, "apply">, identity: Identity, key: string) {
    [this.#client, this.#identity, this.#key] = [client, identity, key];
  }

  /** Whether a binding with a pause-period has begun another rollout since the last call. */
  hasBegun({ metadata: { uid }, spec, status }: SecretBinding): boolean {
    const began = status?.rollout?.lastStartTime;
    if (spec.rollout?.minInterval === undefined || began === undefined || this.#began.get(uid) === began) return false;
    this.#began.set(uid, began);
    return true;
  }

  gone({ metadata }: SecretBinding): void {
    this.#began.delete(metadata.uid);
  }

  /** Writes the annotations that have changed. Throws Problem. */
  async sync(pausables: readonly Pausable[], now = Date.now()): Promise<WorkResult> {
    const pauses = pausables.map((each) => ({ ...each, pause: pauseOf(each.bindings, now) }));
    await mapConcurrent(pauses, async ({ ref, version, noted, pause }) => {
      if (noted === pause?.since) return void this.#written.delete(version.uid);
      // Another client keeps the annotation there, such as a Reloader that still runs.
      if (pause === undefined && this.#written.has(version.uid) && this.#written.get(version.uid) === noted) return;
      await this.#write(ref, version.uid, pause?.since);
      this.#written.set(version.uid, noted);
    });
    const ends = pauses.flatMap(({ pause }) => (pause === undefined ? [] : [pause.endsAt]));
    if (ends.length === 0) return { retry: "never" };
    return { retry: "after", ms: Math.min(...ends) - now + SLACK_MS };
  }

  /** Without `since`, Inlay's value is removed and the value of another field manager stays. */
  async #write(ref: ObjectRef, uid: string, since: string | undefined): Promise<void> {
    const leaves = since === undefined ? {} : { metadata: { annotations: { [this.#key]: since } } };
    try {
      await this.#client.apply(this.#identity, ref, uid, leaves, { fieldManager: RELOADER_ACCOUNT, force: true });
    } catch (error) {
      // The Deployment is deleted, or another one has its name.
      if ([404, 409, 422].some((status) => isStatus(error, status))) return;
      throw refusal(error, { identity: this.#identity, ref, verbs: WRITE_VERBS }, "patch");
    }
  }
}

/** Of the pauses that have not ended, the one that ends last. `since` is cut to seconds, as Reloader writes it. */
export function pauseOf(
  bindings: readonly SecretBinding[],
  now: number,
): { since: string; endsAt: number } | undefined {
  const pauses = bindings.flatMap(({ spec: { rollout }, status }) => {
    const began = status?.rollout?.lastStartTime;
    if (rollout?.minInterval === undefined || began === undefined) return [];
    const endsAt = Date.parse(began) + parseDuration(rollout.minInterval, "spec.rollout.minInterval");
    return endsAt > now ? [{ since: `${began.slice(0, 19)}Z`, endsAt }] : [];
  });
  return pauses.toSorted((a, b) => b.endsAt - a.endsAt)[0];
}
