/** Records the copies of Jobs in the status of a binding. One write may record several. */
import type { RolloutStatus } from "../../api/rollout.ts";
import { withWorkloads } from "../decide/intent-status.ts";
import type { CopyRecord } from "./recreate-job.ts";

export class JobCopies {
  readonly #note: (status: RolloutStatus) => Promise<void>;
  readonly #before: RolloutStatus | undefined;
  /** The uids of the copies, by the uids of their Jobs. */
  readonly #uids: Map<string, string>;
  #last: Promise<void> = Promise.resolve();
  /** The next write, which has not begun and includes every copy until then. */
  #next: Promise<void> | undefined;

  /** `before` is the present status, with the Jobs; `note` writes a status. */
  constructor(before: RolloutStatus | undefined, note: (status: RolloutStatus) => Promise<void>) {
    this.#note = note;
    this.#before = before;
    const recorded = before?.pending?.workloads ?? [];
    this.#uids = new Map(recorded.flatMap(({ uid, copyUID }) => (copyUID === undefined ? [] : [[uid, copyUID]])));
  }

  /** The record for the Job with that uid. */
  of(job: string): CopyRecord {
    return { uid: this.#uids.get(job), write: (copy) => this.#write(job, copy) };
  }

  /** A status with the copies. */
  in(status: RolloutStatus): RolloutStatus {
    return withWorkloads(status, (each) => {
      const copyUID = this.#uids.get(each.uid);
      return copyUID === undefined ? each : { ...each, copyUID };
    });
  }

  /** The present status. */
  get status(): RolloutStatus | undefined {
    return this.#before && this.in(this.#before);
  }

  #write(job: string, copy: string): Promise<void> {
    if (this.#uids.get(job) === copy) return this.#last;
    this.#uids.set(job, copy);
    this.#next ??= this.#last
      .catch(() => undefined)
      .then(async () => {
        this.#next = undefined;
        if (this.status !== undefined) await this.#note(this.status);
      });
    this.#last = this.#next;
    return this.#next;
  }
}
