/** Keeps a map to its newest entries. Pure. */

/** Sets an entry, which is the newest one then, and drops the oldest while there are more than `most`. */
export function setNewest<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= most) break;
    map.delete(oldest);
  }
}
