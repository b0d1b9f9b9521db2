/**
 * Shares restarts between bindings: if another binding has restarted a workload since the values were ready, the workload need
 * not restart again. The state is that of this process: after a start nothing is shared, and at worst a workload restarts once
 * more.
 */
import { setNewest } from "../../apimachinery/newest.ts";
import type { KubeObject } from "../../apimachinery/objects.ts";

interface Written {
  by: string;
  /** The field that was written. */
  place: string;
  text: string;
  /** By the monotonic clock. */
  sentAt: number;
  answer: Promise<KubeObject | "stale">;
}

/** How many workloads are remembered. The oldest are forgotten. */
const MAX_SIZE = 20_000;

export class SharedStamps {
  /** By the uid of the workload. */
  readonly #written = new Map<string, Written>();

  /**
   * Returns the workload's metadata after the restart, or what `write` returns instead, and the text that was written. `readyAt` is
   * when this process had seen the change and everything that the pods need was ready. Throws what `write` throws.
   */
  async write(
    uid: string,
    { by, place, text, readyAt }: { by: string; place: string; text: string; readyAt: number },
    write: () => Promise<KubeObject | "stale">,
  ): Promise<{ answer: KubeObject | "stale"; text: string; isShared?: true }> {
    const last = this.#written.get(uid);
    if (last !== undefined && last.by !== by && last.place === place && last.sentAt >= readyAt) {
      const shared = await last.answer;
      if (shared !== "stale") return { answer: shared, text: last.text, isShared: true };
    }
    const sentAt = performance.now();
    const answer = write();
    setNewest(this.#written, uid, { by, place, text, sentAt, answer: answer.catch(() => "stale" as const) }, MAX_SIZE);
    return { answer: await answer, text };
  }
}
