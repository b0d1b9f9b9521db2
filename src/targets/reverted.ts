/** Compares what the API server stored with what a binding wrote. */
import { createHash } from "node:crypto";
import type { TargetStatus } from "../api/binding.ts";
import { type FieldPath, settled } from "../apimachinery/field-path.ts";
import { sameJson } from "../apimachinery/json.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import { describeRef, type JsonValue, type KubeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { attemptSync, Problem, type ProblemParts } from "../apimachinery/problem.ts";
import { recordedPaths } from "../apply/decide.ts";
import { type Form, formIn } from "../apply/forms.ts";
import { type LastApplied, wasSent } from "../apply/last-applied.ts";
import type { PlannedField } from "../transform/plan-types.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import type { SyncContext } from "./dependencies.ts";

/** The limit of paths in a message. */
export const MAX_NAMED = 5;

export interface Write {
  ref: ObjectRef;
  /** The object before the write, as far as it is known; undefined if the write creates it. */
  live: KubeObject | undefined;
  /** Set if the write was decided without a read: then `live` has no values. */
  lastApplied?: LastApplied | undefined;
  record: TargetStatus;
  fields: readonly WrittenField[];
  fieldManager: string;
  shape: TargetShape;
}

type WrittenField = Pick<PlannedField, "path" | "value"> & { at: FieldPath };

/** The API server accepted a write, and stored other values. */
export class Reversion extends Problem {
  /** The paths whose value is the one from before the write. */
  readonly unchanged: readonly string[];
  constructor(parts: ProblemParts, unchanged: readonly string[]) {
    super("Reverted", parts);
    this.unchanged = unchanged;
  }
}

/** The problem of a write after which the object holds other values; undefined if it holds these, in any form. */
export function reversionIn(write: Write, written: KubeObject): Reversion | undefined {
  const { ref, live } = write;
  const other = withForm("other", write, written);
  if (other.length === 0) return undefined;
  const isUnchanged = live?.metadata.resourceVersion === written.metadata.resourceVersion;
  const old = other.filter((field) => isUnchanged || wasThere(write, field, written));
  const what = old.length === other.length ? "the value from before" : "another value";
  const where = describeRef(ref);
  const parts = {
    at: [firstOf(other.map(pathText), MAX_NAMED)],
    what:
      `the API server accepted the write to ${where}, and stored ${what}. It does not say why: ` +
      "a mutating admission policy, an admission webhook or the kind itself changed the write. " +
      `Change that rule, or remove the field from the binding. ${FIND_RULES.fix}`,
    command: FIND_RULES.command,
  };
  return new Reversion(parts, old.map(pathText));
}

const pathText = ({ path }: WrittenField) => String(path);

/** Whether the stored value is the one from before the write; without a read, whether it is the one that Inlay sent last. */
function wasThere({ live, lastApplied }: Write, { path, at }: WrittenField, written: KubeObject): boolean {
  const [before, after] = [live, written].map((object) => attemptSync(() => at.get(object)));
  if (after instanceof Problem) return false;
  if (lastApplied !== undefined) return wasSent(lastApplied, path, after as JsonValue | undefined);
  return before !== undefined && sameJson(before, after);
}

/** How to find the rules that change a write. */
export const FIND_RULES = {
  fix: "List the rules",
  command: "kubectl get mutatingadmissionpolicies,mutatingwebhookconfigurations",
};

/** What the record keeps after a write: the revision of the values, if the API server stores one in a similar form. */
export function normalizedIn(
  context: Pick<SyncContext, "sourceRevisions">,
  write: Write,
  written: KubeObject,
): string | undefined {
  return withForm("similar", write, written).length > 0 ? revisionOf(context) : undefined;
}

function withForm(form: Form, write: Write, written: KubeObject): WrittenField[] {
  settled(written);
  return write.fields.filter((field) => formAfter(write, field, written) === form);
}

/** The form in which the object holds the value after the write. A similar one that was there before may be put back. */
function formAfter(write: Write, field: WrittenField, written: KubeObject): Form {
  const { fieldManager, shape, live, lastApplied, record } = write;
  const formIf = (wasThere: boolean) =>
    formIn(written, { path: field.at, value: field.value }, fieldManager, shape, undefined, wasThere);
  const form = formIf(false);
  if (form !== "similar" || live === undefined || !wasThere(write, field, written)) return form;
  // The value from before was stored as it was sent, so no rule normalizes such values.
  if (lastApplied !== undefined) return "other";
  if (!recordedPaths(record, live).includes(String(field.path))) return formIf(true);
  return record.normalizedFor === undefined ? "other" : form;
}

/** Changes with the spec and with every source. Not of any value. */
export const revisionOf = ({ sourceRevisions }: Pick<SyncContext, "sourceRevisions">): string =>
  createHash("sha256").update(sourceRevisions).digest("base64url").slice(0, 22);
