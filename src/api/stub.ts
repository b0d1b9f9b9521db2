/**
 * The stub of a SecretBinding that is too large to be kept: what Inlay needs to report that, and to find out who generated the binding. It has
 * no sources and no targets, and so claims no field.
 */
import { jsonLength } from "../apimachinery/json-length.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { FINALIZER, type StoredBinding } from "./binding.ts";
import { CLAIM_ANNOTATION, CLAIM_UID_LABEL, COMPOSITION_LABEL, TEMPLATE_LABEL } from "./composed.ts";
import { GENERATED_FOR, GENERATED_FOR_UID } from "./reloader.ts";

const STUB = Symbol("stub");
const LABELS = [COMPOSITION_LABEL, TEMPLATE_LABEL, CLAIM_UID_LABEL, GENERATED_FOR];
const ANNOTATIONS = [CLAIM_ANNOTATION, GENERATED_FOR_UID];
/** The names of a claim and its namespace, and a uid; and what the API server gives a field of an owner. */
const MAX_TEXT_LENGTH = 512;
const MAX_OWNERS = 8;
/** Of the conditions, a user may have written any number to the status. */
const MAX_CONDITIONS = 8;
const MAX_MESSAGE_LENGTH = 32 * 1024;

/** Whether it is the stub of a binding. To write or release the binding, read it first. */
export const isStub = (binding: object): boolean => STUB in binding;

export function stubOf({ apiVersion, kind, metadata, spec, status }: StoredBinding): StoredBinding {
  const { labels, annotations, finalizers = [], ownerReferences, ...rest } = metadata;
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp } = rest;
  const { observedGeneration, conditions, problems } = status ?? {};
  const stub: StoredBinding & { [STUB]: true } = {
    [STUB]: true,
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      uid,
      resourceVersion,
      ...(generation !== undefined && { generation }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
      labels: picked(labels, LABELS),
      annotations: picked(annotations, ANNOTATIONS),
      finalizers: finalizers.includes(FINALIZER) ? [FINALIZER] : [],
      ...(ownerReferences && { ownerReferences: ownerReferences.slice(0, MAX_OWNERS).filter(isShort) }),
    },
    spec: {
      serviceAccountName: spec.serviceAccountName,
      ...(spec.suspend !== undefined && { suspend: spec.suspend }),
      defaults: spec.defaults,
      sources: [],
      targets: [],
    },
    ...(status && {
      status: {
        ...(observedGeneration !== undefined && { observedGeneration }),
        // A binding that is too large has no other problem.
        ...(problems && { problems: problems.slice(0, 1) }),
        ...(conditions && { conditions: conditions.slice(0, MAX_CONDITIONS).filter(isOfInlay) }),
      },
    }),
  };
  return stub;
}

const isShort = (owner: object): boolean =>
  Object.values(owner).every((each) => typeof each !== "string" || each.length <= MAX_TEXT_LENGTH);

const isOfInlay = ({ type, reason, message }: { type: string; reason: string; message: string }): boolean =>
  type.length + reason.length <= MAX_TEXT_LENGTH && message.length <= MAX_MESSAGE_LENGTH;

function picked(texts: Readonly<Record<string, string>> = {}, keys: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    keys.flatMap((key) => {
      const text = texts[key];
      return text !== undefined && text.length <= MAX_TEXT_LENGTH ? [[key, text]] : [];
    }),
  );
}

/**
 * About the number of characters of a binding as JSON, which `limits.bindingBytes` limits. The conditions and problems do not count: so a binding
 * does not become smaller by the condition that it is too large.
 */
export function bindingLength({ metadata, spec, status }: StoredBinding): number {
  const { conditions: _, problems: __, ...rest } = status ?? {};
  const { managedFields: ___, ...own } = metadata;
  return jsonLength({ metadata: own, spec, status: rest } as object as JsonObject);
}
