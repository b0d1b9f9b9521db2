/** Records the copies of Jobs in the status of a binding: of several at a time in one write. */
import type { RolloutStatus } from "../../api/rollout.ts";
import { withWorkloads } from "../decide/intent-status.ts";
import type { CopyRecord } from "./recreate-job.ts";

export class JobCopies {
  readonly #note: (status: RolloutStatus) => Promise<void>;
  readonly #before: RolloutStatus | undefined;
  /** The uids of copies by those of their Jobs. */
  readonly #uids: Map<string, string>;
  #last: Promise<void> = Promise.resolve();
  /** The write that has not begun, and has all that comes until then. */
  #next: Promise<void> | undefined;

  /** `before` is the status as it is now, which has the Jobs; `note` writes it. */
  constructor(before: RolloutStatus | undefined, note: (status: RolloutStatus) => Promise<void>) {
    this.#note = note;
    this.#before = before;
    const recorded = before?.pending?.workloads ?? [];
    this.#uids = new Map(recorded.flatMap(({ uid, copyUID }) => (copyUID === undefined ? [] : [[uid, copyUID]])));
  }

  /** Of the Job with that uid. */
  of(job: string): CopyRecord {
    return { uid: this.#uids.get(job), write: (copy) => this.#write(job, copy) };
  }

  /** A status with the copies in it. */
  in(status: RolloutStatus): RolloutStatus {
    return withWorkloads(status, (each) => {
      const copyUID = this.#uids.get(each.uid);
      return copyUID === undefined ? each : { ...each, copyUID };
    });
  }

  /** The status as it is now. */
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
