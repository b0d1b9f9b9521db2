/** Finds places in sorted lists. Pure. */

/** How many items are before a place: the items for which `isBefore` holds come first. By binary search. */
export function insertionPoint<T>(items: readonly T[], isBefore: (item: T) => boolean): number {
  let [from, to] = [0, items.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (isBefore(items[middle] as T)) from = middle + 1;
    else to = middle;
  }
  return from;
}
