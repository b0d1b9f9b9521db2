/** Limits the running requests to each server, and lets waiting namespaces take turns. */
import { RoundRobinQueue } from "../workqueue/round-robin-queue.ts";

type Work = () => Promise<void> | undefined;

export class Turns {
  readonly #maxConcurrent: number;
  readonly #servers = new Map<string, { running: number; readonly waiting: RoundRobinQueue<Work> }>();

  /** `maxConcurrent`: the most running requests to each server. */
  constructor(maxConcurrent: number) {
    this.#maxConcurrent = maxConcurrent;
  }

  /** Runs `work` when it is its turn; at once if a slot is free. Replaces waiting work with the same key. */
  take(server: string, namespace: string, key: string, work: Work): void {
    const turns = this.#servers.get(server) ?? { running: 0, waiting: new RoundRobinQueue<Work>() };
    this.#servers.set(server, turns);
    turns.waiting.set(namespace, key, work);
    this.#fill(server);
  }

  #fill(server: string): void {
    const turns = this.#servers.get(server);
    if (turns === undefined) return;
    while (turns.running < this.#maxConcurrent) {
      const work = turns.waiting.next();
      if (work === undefined) break;
      const running = work();
      if (running === undefined) continue;
      turns.running++;
      void running.finally(() => {
        turns.running--;
        this.#fill(server);
      });
    }
    if (turns.running === 0 && turns.waiting.size === 0) this.#servers.delete(server);
  }
}
