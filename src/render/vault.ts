/** Answers from the file of values in place of Vault, for the code that resolves and reads sources. Every VaultConnection is ready. */
import type { VaultConnection } from "../api/vault-connection.ts";
import { isObject } from "../apimachinery/json.ts";
import { describeObject, type JsonObject, type KubeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { VAULT_CONNECTIONS } from "../apimachinery/resources.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { attempt } from "../kube/access-error.ts";
import type { Poll, PollState } from "../sources/poll.ts";
import type { ResolveContext, ResolvedSource } from "../sources/source.ts";
import type { VaultAnswer, VaultConnected } from "../vault/types.ts";
import type { FileCluster } from "./file-cluster.ts";
import { keyOf, serverKey, textOf, type VaultPart, type VaultValues } from "./vault-values.ts";

export interface FileVault {
  readonly connections: ResolveContext["vault"];
  readonly polls: ResolveContext["polls"];
  /** Missing values, and what to add to the files. */
  readonly notes: ReadonlySet<string>;
  /** Requests each source once, so that it can be read. */
  ask(sources: Iterable<ResolvedSource | Problem>): Promise<void>;
}

/** A connection that is not in the files allows everything, with a note. */
const ANY_PATH = ["*"];
const VERSION = "0";

/** For one binding. */
export function fileVault(cluster: Pick<FileCluster, "find">, values: VaultValues): FileVault {
  const notes = new Set<string>();
  const states = new Map<string, PollState>();
  return {
    notes,
    connections: {
      get(namespace, name) {
        const ref: ObjectRef = { resource: VAULT_CONNECTIONS, namespace, name };
        const called = describeObject(ref.resource.kind, namespace, name);
        const found = cluster.find(ref) as (KubeObject & Pick<VaultConnection, "spec">) | undefined;
        if (found === undefined)
          notes.add(`${called} is not in the files, so its paths are not checked; add it to the files`);
        const connected = connectedTo(found?.spec.address, called, values, notes);
        const paths = found === undefined ? ANY_PATH : (found.spec.paths ?? []);
        const labels = found?.metadata.labels ?? {};
        return { phase: "ready", revision: VERSION, connected, paths, labels, usesAccountTokens: false };
      },
    },
    polls: {
      stateOf: <T>({ id }: Poll<T>) => (states.get(id) ?? { phase: "pending" }) as PollState<T>,
    },
    async ask(sources) {
      for (const source of sources) {
        const poll = source instanceof Problem || source.watched || source.listed ? undefined : source.poll;
        if (poll === undefined) continue;
        const answer = await attempt(poll.ask(undefined));
        states.set(
          poll.id,
          answer instanceof Problem ? { phase: "failed", problem: answer } : { phase: "synced", answer },
        );
      }
    },
  };
}

function connectedTo(
  ownAddress: string | undefined,
  called: string,
  values: VaultValues,
  notes: Set<string>,
): VaultConnected {
  const custom = (key: string) => textsIn(values.fieldsOf("metadata", key)?.["custom_metadata"]);
  const answer = (part: VaultPart, key: string, fields = values.fieldsOf(part, key)): VaultAnswer => {
    if (fields !== undefined)
      return { version: VERSION, content: contentOf(fields, part === "health" ? {} : custom(key)) };
    notes.add(`there are no values for ${part} ${key}; ${values.adviceFor(part, key)}`);
    return { version: VERSION, content: undefined };
  };
  return {
    retryLogins: () => {},
    loginOf: () => "",
    async data(_, { version, ...place }) {
      const key = keyOf(place);
      // The file may have an entry for one version.
      return answer("data", key, values.fieldsOf("data", `${key} version ${version}`) ?? values.fieldsOf("data", key));
    },
    metadata: async (_, place) => answer("metadata", keyOf(place)),
    async health(address = ownAddress) {
      if (address !== undefined) return answer("health", serverKey(address));
      notes.add(`the address of ${called} is unknown; add it to the files, or set an address in the source`);
      return { version: VERSION, content: undefined };
    },
  };
}

const contentOf = (fields: JsonObject, custom: Record<string, string>) => ({
  data: new Map(
    Object.entries(fields).map(
      ([key, value]) => [key, new SecretValue<Uint8Array>(Buffer.from(textOf(value)))] as const,
    ),
  ),
  custom: new SecretValue(custom),
});

const textsIn = (custom: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(isObject(custom) ? custom : {}).map(([key, value]) => [key, textOf(value)]));
