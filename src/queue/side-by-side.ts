/** Many things come in, each is worked on, so many at once, and what became of each goes out, in their order. */

/** So many requests keep the API server busy, and leave room for those of others. */
const AT_ONCE = 32;

/** Waits until all have ended, also when one fails: what goes on in the background could meet the next reconcile. */
export async function sideBySide<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results = new Array<R>(items.length);
  const errors: unknown[] = [];
  const left = items.entries();
  const worker = async () => {
    for (const [position, item] of left) {
      try {
        results[position] = await work(item);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, worker));
  if (errors.length > 0) throw errors[0];
  return results;
}
