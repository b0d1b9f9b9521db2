/**
 * Converts between the records in memory, one for each object, and the stored status. There, selected objects in the
 * same state share an entry, so that a status has room for a thousand objects. Pure.
 */
import type { SecretBinding, Status, StoredBinding, StoredRecord, StoredStatus, TargetStatus } from "./binding.ts";

/** The limit of different messages for selected objects. Further entries have only their reason. */
const MAX_MESSAGES = 10;

export function storedStatus(status: Status): StoredStatus {
  const { targets, ...rest } = status;
  return targets === undefined ? rest : { ...rest, targets: compact(targets) };
}

/** The binding with one record for each object. */
export function asRecorded(stored: StoredBinding): SecretBinding {
  const { status } = stored;
  if (status?.targets === undefined) return stored as SecretBinding;
  return { ...stored, status: { ...status, targets: expand(status.targets) } };
}

export function compact(records: readonly TargetStatus[]): StoredRecord[] {
  const stored: StoredRecord[] = [];
  const groups = new Map<string, string[]>();
  const messages = new Set<string>();
  for (const record of records) {
    if (!record.selected) {
      stored.push(record);
      continue;
    }
    const { selected: _, namespace: _w, name: _n, uid: _u, message, ...state } = record;
    if (message !== undefined && messages.size < MAX_MESSAGES) messages.add(message);
    const shown = message !== undefined && messages.has(message) ? { ...state, message } : state;
    const key = JSON.stringify(Object.entries(shown).sort(([a], [b]) => (a < b ? -1 : 1)));
    const objects = groups.get(key) ?? [];
    objects.push(textOf(record));
    if (groups.has(key)) continue;
    groups.set(key, objects);
    stored.push({ ...shown, objects });
  }
  return stored;
}

export function expand(stored: readonly StoredRecord[]): TargetStatus[] {
  return stored.flatMap((record) => {
    if (record.objects === undefined) return [record];
    const { objects, name: _, ...state } = record;
    return objects.map((text): TargetStatus => ({ ...state, ...objectOf(text), selected: true }));
  });
}

type NamedObject = Pick<TargetStatus, "namespace" | "name" | "uid">;

/** A blank separates name and uid, so a blank in a name becomes %20. Names have no slash or percent sign. */
function textOf({ namespace, name, uid }: NamedObject): string {
  const where = namespace === undefined ? "" : `${namespace}/`;
  return `${where}${name.replaceAll(" ", "%20")}${uid === undefined ? "" : ` ${uid}`}`;
}

function objectOf(text: string): NamedObject {
  const [where = "", uid] = text.split(" ");
  const slash = where.indexOf("/");
  const namespace = slash < 0 ? undefined : where.slice(0, slash);
  return {
    ...(namespace !== undefined && { namespace }),
    name: where.slice(slash + 1).replaceAll("%20", " "),
    ...(uid !== undefined && { uid }),
  };
}
