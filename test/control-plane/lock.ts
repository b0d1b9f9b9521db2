/**
 * A lock between processes on a path. The holder touches the file while it lives, so the lock of a killed holder expires in
 * seconds, even in another container.
 */
import { rm, stat, utimes, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

const TOUCHED_EVERY = 2_000;
const STALE_AFTER = 10_000;
const POLLED_EVERY = 250;

interface Waiting {
  /** Called while waiting. If the other holder has done the work, this process no longer needs the lock. */
  isDone: () => boolean;
  onWait: () => void;
}

/** Takes the lock and returns the function that releases it, or returns "done" if the work is done. */
export async function lock(file: string, { isDone, onWait }: Waiting): Promise<"done" | (() => Promise<void>)> {
  for (let attempt = 0; ; attempt++) {
    if (isDone()) return "done";
    if (await create(file)) return hold(file);
    if (await isStale(file)) {
      await rm(file, { force: true });
      continue;
    }
    if (attempt === 0) onWait();
    await sleep(POLLED_EVERY);
  }
}

async function create(file: string): Promise<boolean> {
  try {
    await writeFile(file, `${process.pid}\n`, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

async function isStale(file: string): Promise<boolean> {
  try {
    return Date.now() - (await stat(file)).mtimeMs > STALE_AFTER;
  } catch {
    return false;
  }
}

function hold(file: string): () => Promise<void> {
  const touching = setInterval(() => {
    const now = new Date();
    utimes(file, now, now).catch(() => {});
  }, TOUCHED_EVERY);
  return async () => {
    clearInterval(touching);
    await rm(file, { force: true });
  };
}
