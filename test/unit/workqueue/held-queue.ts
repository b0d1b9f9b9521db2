/** A work queue whose runs end when a test says so. It reports how many run at once and what happened to its keys. */
import assert from "node:assert/strict";
import {
  type StartOptions,
  type Worker,
  WorkQueue,
  type WorkQueueOptions,
  type WorkResult,
} from "../../../src/workqueue/work-queue.ts";
import { settled } from "../clock.ts";

export const DONE: WorkResult = { retry: "never" };
export const BACKOFF: WorkResult = { retry: "backoff" };

interface Run {
  key: string;
  finish(result: WorkResult): void;
  fail(error: unknown): void;
}

interface Work extends WorkQueueOptions, StartOptions {
  work: Worker["reconcile"];
}

export function startedQueue({ work, ...options }: Work): WorkQueue {
  const queue = new WorkQueue(options);
  queue.start({ reconcile: work }, options);
  return queue;
}

/** A queue whose worker does nothing until the test ends its runs. */
export function heldQueue(concurrency: number, groupOf?: (key: string) => string) {
  const started: string[] = [];
  const underWay: Run[] = [];
  const errors: [key: string, error: unknown][] = [];
  const queue = startedQueue({
    concurrency,
    ...(groupOf && { groupOf }),
    backoffMs: { first: 100, most: 1_000 },
    onError: (key, error) => errors.push([key, error]),
    work: (key) => {
      started.push(key);
      const { promise, resolve, reject } = Promise.withResolvers<WorkResult>();
      const run: Run = { key, finish: resolve, fail: reject };
      underWay.push(run);
      return promise.finally(() => underWay.splice(underWay.indexOf(run), 1));
    },
  });
  return {
    queue,
    started,
    underWay,
    errors,
    async finish(key: string, result: WorkResult = DONE) {
      await settled();
      const run = underWay.find((each) => each.key === key);
      assert.ok(run, `${key} is not under way`);
      run.finish(result);
      await settled();
    },
  };
}
