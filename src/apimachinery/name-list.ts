/** Prints lists of names for messages. Pure. */

/** Prints the first `most` names, such as `a, b and 3 more`. */
export function firstOf(names: readonly string[], most: number): string {
  const more = names.length - most;
  return `${names.slice(0, most).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
