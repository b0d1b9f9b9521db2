/** Says which values a release left because other field managers own them too, and how to remove them. Pure. */
import { firstOf } from "../apimachinery/name-list.ts";
import { describeObject, type ObjectRef, plainPath, quoted } from "../apimachinery/objects.ts";
import type { Shared } from "../apply/release.ts";
import { resourceText, shellWord } from "../kube/grant-commands.ts";
import { MAX_NAMED } from "./reverted.ts";

const MAX_MANAGERS = 3;
/** A longer command would be cut in an event. */
const MAX_COMMAND_LENGTH = 500;

/** Undefined if no value is shared. No value is in it. */
export function sharedValues({ resource, namespace, name }: ObjectRef, shared: readonly Shared[]): string | undefined {
  if (shared.length === 0) return undefined;
  const entries = shared.map(
    ({ path, managers }) => `${plainPath(path)} (${firstOf(managers.map(quoted), MAX_MANAGERS)})`,
  );
  const pointers = shared.flatMap(({ pointer }) => pointer ?? []);
  const where = namespace === undefined ? "" : ` -n ${shellWord(namespace)}`;
  const patch = JSON.stringify(pointers.map((path) => ({ op: "remove", path })));
  const command = `kubectl patch ${resourceText(resource)} ${shellWord(name)}${where} --type=json -p ${shellWord(patch)}`;
  const isWhole = pointers.length === shared.length && command.length <= MAX_COMMAND_LENGTH;
  const how = isWhole ? `with: ${command}` : "by editing the object";
  const they = shared.length === 1 ? "it" : "them";
  return `did not remove ${firstOf(entries, MAX_NAMED)} of ${describeObject(resource.kind, namespace, name)}: the field managers in parentheses own ${they} too. Remove ${they} from what they apply; if they only apply what they find in the cluster, remove ${they} ${how}`;
}

/** For the status, which has room for a few. */
export function notesOn(retained: readonly string[]): string[] {
  const more = retained.length - MAX_NAMED;
  const rest = more > 0 ? [`values stay in ${more} more objects that others own too; see the events`] : [];
  return [...retained.slice(0, MAX_NAMED), ...rest];
}
