/** Limits a map, which has its oldest entries first, to its newest entries. Pure. */

const MAX_REMEMBERED = 256;
const MAX_LENGTH = 128;

/** Sets an entry as the newest one, and removes the oldest entries beyond `most`. */
export function setNewest<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= most) break;
    map.delete(oldest);
  }
}

/** The value of a text, computed unless it is known. The map keeps a few hundred texts, and no long ones. */
export function remembered<V>(known: Map<string, V>, text: string, compute: () => V): V {
  if (known.has(text)) return known.get(text) as V;
  const value = compute();
  if (text.length <= MAX_LENGTH) setNewest(known, text, value, MAX_REMEMBERED);
  return value;
}

/** Removes the oldest entries, up to the first one that is not outdated. */
export function dropOutdated<K, V>(map: Map<K, V>, isOutdated: (value: V) => boolean): void {
  for (const [key, value] of map) {
    if (!isOutdated(value)) return;
    map.delete(key);
  }
}
