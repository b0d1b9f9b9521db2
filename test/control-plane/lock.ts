/**
 * A lock between processes: what comes in is a path, what goes out is the function that releases it. The holder touches
 * the file as long as it lives, so a lock whose holder was killed, in whichever container, is free again in seconds.
 */
import { rm, stat, utimes, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

const TOUCHED_EVERY = 2_000;
const STALE_AFTER = 10_000;
const POLLED_EVERY = 250;

interface Waiting {
  /** Asked while waiting: when the other holder has done the work, the lock is no longer wanted. */
  isDone: () => boolean;
  onWait: () => void;
}

/** Takes the lock, or says that waiting for it was enough. */
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
