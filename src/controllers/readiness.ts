/** Reads from the status of objects whether they are ready, and counts them by the VaultConnection that they read through. Pure. */
interface WithConditions {
  status?: { conditions?: readonly { type: string; status: string; reason: string; message?: string }[] };
}

/** The condition Ready. Undefined if the object has none yet. */
export const readinessOf = ({ status }: WithConditions) => status?.conditions?.find(({ type }) => type === "Ready");

/** Whether Inlay waits for a user. */
export const isStalled = ({ status }: WithConditions): boolean =>
  status?.conditions?.some(({ type }) => type === "Stalled") === true;

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
