/** Says which values a release left because other field managers own them too, and how to remove them. Pure. */
import { firstOf } from "../apimachinery/name-list.ts";
import { describeRef, type ObjectRef, plainPath, quoted } from "../apimachinery/objects.ts";
import type { Shared } from "../apply/release.ts";
import { patchCommand } from "../kube/remove-commands.ts";
import { MAX_NOTE_BYTES } from "../observability/events.ts";
import { MAX_NAMED } from "./reverted.ts";

const MAX_MANAGERS = 3;

/** Undefined if no value is shared. No value is in it. */
export function sharedValues(ref: ObjectRef, shared: readonly Shared[]): string | undefined {
  if (shared.length === 0) return undefined;
  const entries = shared.map(withManagers);
  const pointers = shared.flatMap(({ pointer }) => pointer ?? []);
  const removals = pointers.map((path) => ({ op: "remove" as const, path }));
  const command = patchCommand(ref, removals);
  const they = shared.length === 1 ? "it" : "them";
  const note = (how: string) =>
    `did not remove ${firstOf(entries, MAX_NAMED)} of ${describeRef(ref)}: the field managers in parentheses own ${they} too. Remove ${they} from what they apply; if they only apply what they find in the cluster, remove ${they} ${how}`;
  const whole = note(`with: ${command}`);
  // An event would cut the command. Anyone who may write the object chooses the names of managers.
  const isPrinted = pointers.length === shared.length && Buffer.byteLength(whole) <= MAX_NOTE_BYTES;
  return isPrinted ? whole : note("by editing the object");
}

/** A path with the managers that own it. */
export const withManagers = ({ path, managers }: Pick<Shared, "path" | "managers">): string =>
  `${plainPath(path)} (${firstOf(managers.map(quoted), MAX_MANAGERS)})`;

/** For the status, which has room for a few. */
export function notesOn(retained: readonly string[]): string[] {
  const more = retained.length - MAX_NAMED;
  const rest = more > 0 ? [`values stay in ${more} more objects that others own too; see the events`] : [];
  return [...retained.slice(0, MAX_NAMED), ...rest];
}
