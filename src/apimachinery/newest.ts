/** Limits a map, which has its oldest entries first, to its newest entries. Pure. */

/** Sets an entry as the newest one, and removes the oldest entries beyond `most`. */
export function setNewest<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= most) break;
    map.delete(oldest);
  }
}

/** Removes the oldest entries, up to the first one that is not outdated. */
export function dropOutdated<K, V>(map: Map<K, V>, isOutdated: (value: V) => boolean): void {
  for (const [key, value] of map) {
    if (!isOutdated(value)) return;
    map.delete(key);
  }
}
