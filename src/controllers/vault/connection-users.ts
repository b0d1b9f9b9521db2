/** Counts the bindings that read through each VaultConnection by whether they are ready. Pure. */
import { readinessOf, type WithConditions } from "../readiness.ts";

export interface Counts {
  ready: number;
  notReady: number;
}

interface Reader extends WithConditions {
  metadata: { namespace?: string };
  spec: { sources?: readonly { vault?: { connection: { name: string; namespace?: string } } }[] };
}

/** The bindings that read through each VaultConnection, by its `namespace/name`. */
export function countByConnection(bindings: Iterable<Reader>): Map<string, Counts> {
  const counts = new Map<string, Counts>();
  for (const binding of bindings) {
    const used = (binding.spec.sources ?? []).flatMap(({ vault }) =>
      vault === undefined
        ? []
        : [`${vault.connection.namespace ?? binding.metadata.namespace}/${vault.connection.name}`],
    );
    for (const connection of new Set(used)) {
      const count = counts.get(connection) ?? { ready: 0, notReady: 0 };
      counts.set(connection, count);
      if (readinessOf(binding)?.status === "True") count.ready++;
      else count.notReady++;
    }
  }
  return counts;
}
