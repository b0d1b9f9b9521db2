/** The requests of the controller that concern one team, as itself and as an account. */
import type { AuditedRequest } from "./audit.ts";
import { eventually } from "./eventually.ts";
import { auditLog } from "./shared.ts";
import type { TestNamespace } from "./test-namespace.ts";

export const CONTROLLER = "system:serviceaccount:inlay-system:inlay-controller";

let markers = 0;

/** Returns all requests since a mark that were answered before this call, and possibly later ones. */
export async function requestsFor(team: TestNamespace, mark: number): Promise<AuditedRequest[]> {
  await loggedUntilNow(team);
  return (await auditLog().since(mark)).filter((request) => isFor(team, request));
}

/** The watches since a mark that concern one team, and whether each is still open. */
export async function watchesFor(team: TestNamespace, mark: number): Promise<(AuditedRequest & { open: boolean })[]> {
  await loggedUntilNow(team);
  return (await auditLog().watchesSince(mark)).filter((request) => isFor(team, request));
}

/**
 * Waits until the log is complete: a request is logged when it is answered or a moment later, and requests are logged in order.
 */
export async function loggedUntilNow({ api, namespace }: Pick<TestNamespace, "api" | "namespace">): Promise<void> {
  const uri = `/api/v1/namespaces/${namespace}?marker=${++markers}`;
  const mark = await auditLog().mark();
  await api.get(uri);
  await eventually(async () => {
    if (!(await auditLog().since(mark)).some((request) => request.uri === uri)) throw new Error("not in the log yet");
  });
}

function isFor({ namespace }: TestNamespace, { user, as, namespace: where }: AuditedRequest): boolean {
  if (user !== CONTROLLER) return false;
  return as === undefined ? where === namespace : as.startsWith(`system:serviceaccount:${namespace}:`);
}
