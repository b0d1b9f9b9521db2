/** Runs asynchronous work on many items with bounded concurrency. */

/** Enough requests to keep the API server busy, few enough to leave room for other clients. */
const MAX_CONCURRENT = 32;

/**
 * Returns the results in the order of the items. Waits until all have ended, even if one fails: work that continues in the
 * background could overlap the next reconcile.
 */
export async function mapConcurrent<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const errors: unknown[] = [];
  const entries = items.entries();
  const worker = async () => {
    for (const [position, item] of entries) {
      try {
        results[position] = await work(item);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(MAX_CONCURRENT, items.length) }, worker));
  if (errors.length > 0) throw errors[0];
  return results;
}
