/** Refuses kinds and paths that no binding may write, whatever its account is allowed. */

import type { FieldPath } from "../apimachinery/field-path.ts";
import { quoted } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";

const refusedGroups = new Map([
  ["rbac.authorization.k8s.io", "it grants permissions"],
  ["authorization.openshift.io", "it grants permissions"],
  ["admissionregistration.k8s.io", "it decides what the API server admits"],
  ["inlay.dev", "a binding may not change Inlay's own objects"],
]);

/** Throws Problem("ForbiddenKind") for kinds with which a binding's author could gain permissions. */
export function assertWritableKind(group: string, kind: string): void {
  const why = refusedGroups.get(group);
  if (why !== undefined)
    throw new Problem("ForbiddenKind", `${kind} of ${group} can't be a target: ${why}; remove the target`);
}

const refusedRoots = new Map([
  ["apiVersion", "it identifies the object"],
  ["kind", "it identifies the object"],
  ["status", "it belongs to the controller of the object"],
]);

const forbidden = (what: string): Problem => new Problem("ForbiddenPath", what);

/**
 * Throws Problem("ForbiddenPath") for apiVersion, kind, status and all of metadata except single annotations and
 * labels; Problem("InvalidPath") for an annotation's key that should be quoted.
 */
export function assertWritablePath(path: FieldPath): void {
  const [root, map, key, ...below] = path.segments.map((segment) => (segment.kind === "key" ? segment.key : ""));
  if (root === undefined) throw forbidden("the whole object can't be written; name one of its fields");
  const why = refusedRoots.get(root);
  if (why !== undefined) throw forbidden(`${path} can't be written: ${why}; name another field`);
  if (root !== "metadata") return;
  if ((map !== "annotations" && map !== "labels") || key === undefined) {
    throw forbidden(`${path} can't be written: in metadata, a binding can write only single annotations and labels`);
  }
  if (below.length > 0) {
    const instead = `metadata.${map}[${quoted([key, ...below].join("."))}]`;
    throw new Problem(
      "InvalidPath",
      `${path} names a field inside a string; if the key has dots, quote it: ${instead}`,
    );
  }
}

export const isWritableKind = (group: string, kind: string) =>
  attemptSync(() => assertWritableKind(group, kind)) === undefined;
export const isWritablePath = (path: FieldPath) => attemptSync(() => assertWritablePath(path)) === undefined;

/** Throws Problem("ForbiddenPath") for fields that the API server accepts but never returns. */
export function assertReadablePath(group: string, kind: string, path: FieldPath): void {
  const [root] = path.segments;
  if (group === "" && kind === "Secret" && root?.kind === "key" && root.key === "stringData") {
    throw forbidden(`${path} can't be written: the API server never returns that field; write data instead`);
  }
}
