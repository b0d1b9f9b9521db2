/** Limits a map to its newest entries. Pure. */

/** Sets an entry as the newest one, and removes the oldest entries beyond `most`. */
export function setNewest<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= most) break;
    map.delete(oldest);
  }
}
