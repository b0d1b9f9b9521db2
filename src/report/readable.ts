/** The outcomes of a binding's targets come in; what is to be told of values that more people can read from now on goes out. Pure. */
import type { SecretBinding, TargetStatus } from "../api/binding.ts";
import { parseApiVersion } from "../apimachinery/objects.ts";
import type { TargetOutcome } from "../targets/outcome.ts";

/** Once for each kind, by the record: not again for another object, a new value, or after a restart. */
export function newlyReadable(binding: SecretBinding, outcomes: readonly TargetOutcome[]): Set<string> {
  const placeOf = ({ apiVersion, kind, namespace }: TargetStatus, path: string) =>
    [parseApiVersion(apiVersion).group, kind, namespace === binding.metadata.namespace, path].join("|");
  const known = new Set(
    (binding.status?.targets ?? []).flatMap((record) => (record.paths ?? []).map((path) => placeOf(record, path))),
  );
  const isNew = ({ record, readable }: TargetOutcome) =>
    readable?.paths.some((path) => record.paths?.includes(path) && !known.has(placeOf(record, path)));
  return new Set(outcomes.filter(isNew).flatMap(({ readable }) => readable?.note ?? []));
}
