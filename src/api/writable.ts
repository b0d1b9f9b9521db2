/** What no binding may write, whatever its account may do: a kind or a path comes in, a Problem goes out if it is refused. */
import type { FieldPath } from "../apimachinery/field-path.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";

const refusedGroups = new Map([
  ["rbac.authorization.k8s.io", "it decides who may do what"],
  ["authorization.openshift.io", "it decides who may do what"],
  ["admissionregistration.k8s.io", "it decides what the API server lets in"],
  ["inlay.dev", "a binding may not change bindings"],
]);

/** Throws Problem("ForbiddenKind") for kinds that would let a binding's author gain rights. */
export function assertWritableKind(group: string, kind: string): void {
  const why = refusedGroups.get(group);
  if (why !== undefined) throw new Problem("ForbiddenKind", `${kind} of ${group} can't be a target: ${why}`);
}

const refusedRoots = new Map([
  ["apiVersion", "it says what the object is"],
  ["kind", "it says what the object is"],
  ["status", "it belongs to the controller of the object"],
]);

/**
 * Throws Problem("ForbiddenPath") for apiVersion, kind, status and all of metadata but single annotations and labels,
 * and Problem("InvalidPath") where an annotation's key was meant but not quoted.
 */
export function assertWritablePath(path: FieldPath): void {
  const [root, map, key, ...below] = path.segments.map((segment) => (segment.kind === "key" ? segment.key : ""));
  if (root === undefined) throw new Problem("ForbiddenPath", "the whole object can't be written; name a field of it");
  const why = refusedRoots.get(root);
  if (why !== undefined) throw new Problem("ForbiddenPath", `${path} can't be written: ${why}`);
  if (root !== "metadata") return;
  if ((map !== "annotations" && map !== "labels") || key === undefined) {
    throw new Problem("ForbiddenPath", `${path} can't be written: of metadata only single annotations and labels can`);
  }
  if (below.length > 0) {
    const quoted = `metadata.${map}[${JSON.stringify([key, ...below].join("."))}]`;
    throw new Problem("InvalidPath", `${path} goes below a text; if the key has dots, quote it: ${quoted}`);
  }
}

export const isWritableKind = (group: string, kind: string) =>
  attemptSync(() => assertWritableKind(group, kind)) === undefined;
export const isWritablePath = (path: FieldPath) => attemptSync(() => assertWritablePath(path)) === undefined;

/** Throws Problem("ForbiddenPath") for fields that the API server takes and never shows again. */
export function assertReadablePath(group: string, kind: string, path: FieldPath): void {
  const [root] = path.segments;
  if (group === "" && kind === "Secret" && root?.kind === "key" && root.key === "stringData") {
    throw new Problem("ForbiddenPath", `${path} can't be bound: what is written there can't be read again`);
  }
}
