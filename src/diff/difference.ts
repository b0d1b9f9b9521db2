/** The result of `inlay diff`, and its text. Pure. */
import { describeObject } from "../apimachinery/objects.ts";
import { plain } from "../apimachinery/plain.ts";
import { type Advice, type Problem, reasonOf } from "../apimachinery/problem.ts";
import { adviceLines, indented, layOutWhole, type Part, paragraph, section, table } from "../explain/text.ts";
import { OwnAccessDenied } from "../kube/access-error.ts";
import type { Mistake } from "../render/documents.ts";
import type { Opened } from "../render/rendering.ts";
import type { ObjectChange } from "./changes.ts";

/** The user, if the dry runs impersonate no account. */
export const YOU = "you";

/** The reason of a problem. A permission that the controller's own account lacks is the user's, who sends the requests here. */
export function reasonForUser(problem: Problem): Advice {
  if (!(problem instanceof OwnAccessDenied)) return reasonOf(problem);
  return { reason: problem.reason, message: `you may not ${problem.request}; ask for this permission` };
}

/** A target, or an object that the binding would release. */
export interface TargetChange extends ObjectChange {
  /** It would be written after the rollout. */
  when?: "AfterRollout";
  /** Why it would not be written. */
  problem?: Advice;
}

/** A workload that would restart. */
export interface Restart {
  kind: string;
  namespace: string;
  name: string;
  step?: string;
  when: "AtOnce" | "Later";
  /** The step that comes first, if the workload waits for one. */
  after?: string;
  why: string;
  /** Why it waits. */
  message?: string;
}

export interface Restarts {
  workloads: Restart[];
  /** Why those that restart later wait, and until when, if that is known. */
  waits?: Advice & { until?: string };
  /** Why restarts are unknown. */
  problem?: Advice;
}

export interface BindingChange {
  /** "namespace/name". */
  binding: string;
  composition?: string;
  /** Whose permissions the dry runs used: the account, or "you". */
  as: string;
  /** The account does not exist yet, so the user plans the binding. The command creates it with its permissions. */
  account?: Advice;
  /** The binding itself. */
  own: ObjectChange;
  /** Why its targets are unknown. */
  problem?: Advice;
  targets: TargetChange[];
  /** The workloads that would restart. Absent if none would. */
  restarts?: Restarts;
}

export interface Difference {
  /** Inlay's own objects other than bindings. */
  objects: (ObjectChange & { problem?: Advice })[];
  bindings: BindingChange[];
  notes: string[];
  mistakes: Mistake[];
}

type OpenDifference = Opened<Difference>;

/** One patch for each object that would change. */
export const patchesIn = ({ objects, bindings }: OpenDifference) =>
  [
    ...objects,
    ...bindings.flatMap(({ binding, own, targets }) => [own, ...targets.map((each) => ({ ...each, binding }))]),
  ]
    .filter(({ change }) => change !== "none")
    .map(({ fields: _, ...object }) => object);

/** Whether something would change. */
export const differs = ({ objects, bindings }: Pick<OpenDifference, "objects" | "bindings">): boolean =>
  bindings.some(({ restarts }) => restarts !== undefined && restarts.workloads.length > 0) ||
  [...objects, ...bindings.flatMap(({ own, targets }) => [own, ...targets])].some(({ change }) => change !== "none");

/** Whether something could not be compared: by a mistake, or because the user lacks a permission. */
export const isIncomplete = ({ objects, bindings, mistakes }: OpenDifference): boolean =>
  mistakes.length > 0 ||
  [...objects, ...bindings].some(({ problem }) => problem !== undefined) ||
  bindings.some(
    ({ as, targets, restarts }) =>
      as === YOU && [...targets, restarts].some((each) => each?.problem?.reason === "Forbidden"),
  );

export function differenceText({ objects, bindings, notes }: OpenDifference, width: number): string[] {
  const parts = [
    ...objects.filter(({ change, problem }) => change !== "none" || problem).flatMap((each) => objectLines(each, [])),
    ...bindings.flatMap(bindingLines),
    ...section("NOTES", notes.map(paragraph)),
  ];
  return layOutWhole(parts, width);
}

function bindingLines(binding: OpenDifference["bindings"][number]): Part[] {
  const { own, as, account, composition, problem, targets, restarts } = binding;
  const shown = targets.filter((each) => each.change !== "none" || each.problem !== undefined);
  if (own.change === "none" && shown.length === 0 && (problem ?? account ?? restarts) === undefined) return [];
  const of = composition === undefined ? [] : [`of composition ${composition}`];
  return [
    ...objectLines({ ...own, ...(problem && { problem }) }, [...of, `dry runs as ${as}`]),
    ...indented(account === undefined ? [] : adviceLines(`${account.reason}: `, account), 2),
    ...shown.flatMap((each) =>
      indented(objectLines(each, each.when === "AfterRollout" ? ["after the rollout"] : []), 2),
    ),
    ...indented(restarts === undefined ? [] : restartLines(restarts), 2),
  ];
}

function restartLines({ workloads, waits, problem }: Restarts): Part[] {
  const rows = workloads.map((each) => [
    describeObject(each.kind, each.namespace, each.name),
    whenOf(each, waits),
    each.why,
    each.message ?? "",
  ]);
  return [
    "",
    ...table(["WORKLOAD", "WOULD RESTART", "BECAUSE", "MESSAGE"], rows),
    ...(waits === undefined ? [] : [paragraph(`Restarts wait: ${waits.reason}: ${waits.message}`)]),
    ...(problem === undefined ? [] : adviceLines(`Restarts are unknown: ${problem.reason}: `, problem)),
  ];
}

function whenOf({ when, after }: Restart, waits: Restarts["waits"]): string {
  if (when === "AtOnce") return "at once";
  if (after !== undefined) return `after step ${after}`;
  if (waits?.until === undefined) return "later";
  return waits.reason === "OutsideWindow" ? `in the window that begins at ${waits.until}` : `from ${waits.until}`;
}

function objectLines(object: Omit<ObjectChange, "patch"> & { problem?: Advice }, how: readonly string[]): Part[] {
  const { kind, namespace, name, change, fields, problem } = object;
  const words = { create: "created", update: "changed", delete: "deleted", none: "unchanged" };
  const rows = fields.map(({ path, change: of }) => [path, of]);
  return [
    "",
    plain(
      `${describeObject(kind, namespace, name)}: ${[problem && change === "none" ? "unknown" : words[change], ...how].join(", ")}`,
    ),
    ...indented(problem === undefined ? [] : adviceLines(`${problem.reason}: `, problem), 2),
    ...indented(table(["FIELD", "CHANGE"], rows), 2),
  ];
}
