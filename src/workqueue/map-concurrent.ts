/** Many things come in, they are worked on, so many at once, and what became of each goes out, in their order. */

/** So many requests keep the API server busy, and leave room for those of others. */
const AT_ONCE = 32;

/**
 * Waits until all have ended, also when one fails: what goes on in the background could meet the next reconcile. Once it does
 * not `goOn`, no other is begun, and the results are those of the first so many.
 */
export async function sideBySide<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
  goesOn = () => true,
): Promise<R[]> {
  const results: R[] = [];
  const errors: unknown[] = [];
  const left = items.entries();
  const worker = async () => {
    for (const [position, item] of left) {
      try {
        results[position] = await work(item);
      } catch (error) {
        errors.push(error);
      }
      if (!goesOn()) return;
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, worker));
  if (errors.length > 0) throw errors[0];
  return results;
}
