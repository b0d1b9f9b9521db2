/**
 * Stamps that bindings want to write come in; each is written, or one that another binding has written since the values were
 * there is shared: pods that began after both changes need not begin again for the second. Of this process alone: after a
 * restart nothing is shared, which restarts a workload once more at worst.
 */
import { setNewest } from "../../apimachinery/newest.ts";
import type { KubeObject } from "../../apimachinery/objects.ts";

interface Written {
  by: string;
  /** The field that was written. */
  place: string;
  /** By the monotonic clock. */
  sentAt: number;
  answer: Promise<KubeObject | "stale">;
}

/** More workloads than that are not remembered; the oldest are forgotten. */
const MAX_SIZE = 20_000;

export class SharedStamps {
  /** By the uid of the workload. */
  readonly #written = new Map<string, Written>();

  /**
   * The workload's metadata after the stamp, or what `write` says in its place. `readyAt` is when this process had seen the change, and all that the pods need
   * was in its place. Throws what `write` throws.
   */
  async write(
    uid: string,
    { by, place, readyAt }: { by: string; place: string; readyAt: number },
    write: () => Promise<KubeObject | "stale">,
  ): Promise<KubeObject | "stale"> {
    const last = this.#written.get(uid);
    if (last !== undefined && last.by !== by && last.place === place && last.sentAt >= readyAt) {
      const shared = await last.answer;
      if (shared !== "stale") return shared;
    }
    const sentAt = performance.now();
    const answer = write();
    setNewest(this.#written, uid, { by, place, sentAt, answer: answer.catch(() => "stale" as const) }, MAX_SIZE);
    return answer;
  }
}
