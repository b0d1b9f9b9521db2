/** Searches the output of Inlay and the cluster for values of the tests, in every encoding. */
import assert from "node:assert/strict";
import type { AnyObject, Api } from "../controller/api.ts";
import type { AuditLog } from "../controller/audit.ts";
import { foundIn } from "../controller/leak-detector.ts";

export function assertNoValue(where: string, text: string): void {
  assert.deepEqual(foundIn(text), [], `values of Secrets in ${where}`);
}

/**
 * Asserts that the objects of a namespace contain no value: its bindings, its events, and the managedFields of its
 * HarborClusters.
 */
export async function assertNoValueInNamespace(api: Api, namespace: string): Promise<void> {
  const items = async (path: string): Promise<AnyObject[]> => (await api.find(path))?.items ?? [];
  const [bindings, events, core, clusters] = await Promise.all([
    items(`/apis/inlay.dev/v1alpha1/namespaces/${namespace}/secretbindings`),
    items(`/apis/events.k8s.io/v1/namespaces/${namespace}/events`),
    items(`/api/v1/namespaces/${namespace}/events`),
    items(`/apis/goharbor.io/v1beta1/namespaces/${namespace}/harborclusters`),
  ]);
  assertNoValue("SecretBindings", JSON.stringify(bindings));
  assertNoValue("events", JSON.stringify([events, core]));
  assertNoValue("managedFields", JSON.stringify(clusters.map(({ metadata }) => metadata.managedFields)));
}

/** Asserts that the audit log since a mark contains no value, for example in a URL. */
export async function assertNoValueInAuditLog(log: AuditLog, mark: number): Promise<void> {
  for await (const text of log.texts(mark)) assertNoValue("the audit log", text);
}
