/** Computes the status of a VaultConnection. Pure. */
import { isDeepStrictEqual } from "node:util";
import type { ConnectionStatus, VaultConnection } from "../../api/connection.ts";
import { withProgress } from "../../api/progress.ts";
import { conditionOf, type Verdict } from "../../api/verdict.ts";
import type { ConnectionCheck } from "../../vault/connection.ts";
import { NAMESPACE } from "../../vault/path.ts";
import { isTokenReadable } from "./settings.ts";

/** The warning for a connection whose token is in a ConfigMap. */
export const TOKEN_READABLE = {
  reason: "TokenReadable",
  message:
    "the token is in a ConfigMap, so everyone who may read ConfigMaps in this namespace can read it; move it to a Secret",
} as const;

export function statusOf(
  connection: VaultConnection,
  { version, problem }: ConnectionCheck,
  now: Date,
): ConnectionStatus {
  const { metadata, spec, status } = connection;
  const verdict: Verdict =
    problem === undefined
      ? { ready: "True", reason: "Ready", message: whatWorks(spec.auth) }
      : { ready: "False", reason: problem.reason, message: problem.message };
  const condition = conditionOf("Ready", connection, withWarning(connection, verdict), now);
  // While a server does not answer, its last known version stays.
  const before = status?.conditions?.[0]?.observedGeneration === metadata.generation ? status?.version : undefined;
  const known = version ?? (problem && before);
  const conditions = withProgress(connection, [condition], now);
  return { observedGeneration: metadata.generation ?? 0, conditions, ...(known !== undefined && { version: known }) };
}

export const isSameStatus = (a: ConnectionStatus | undefined, b: ConnectionStatus): boolean =>
  a !== undefined && isDeepStrictEqual(a, b);

/** Whether no status says of this spec yet that its token is readable. */
export const isNewlyReadable = (connection: VaultConnection): boolean =>
  isTokenReadable(connection) && connection.status?.observedGeneration !== connection.metadata.generation;

function withWarning(connection: VaultConnection, verdict: Verdict): Verdict {
  if (!isTokenReadable(connection)) return verdict;
  const message = `${verdict.message}; ${TOKEN_READABLE.message}`;
  return { ...verdict, message, ...(verdict.ready === "True" && { reason: TOKEN_READABLE.reason }) };
}

function whatWorks(auth: VaultConnection["spec"]["auth"]): string {
  const answers = "the server answers and is unsealed";
  if (auth === undefined) return answers;
  if (auth.kubernetes?.as === "Binding") return `${answers}; each binding logs in as its own account`;
  if (auth.kubernetes?.role.includes(NAMESPACE)) return `${answers}; each namespace logs in with its own role`;
  return `${answers}, and the login succeeds`;
}
