/** The result of `inlay diff`, and its text. Pure. */
import { describeObject } from "../apimachinery/objects.ts";
import { plain } from "../apimachinery/plain.ts";
import { type Advice, type Problem, reasonOf } from "../apimachinery/problem.ts";
import { adviceLines, indented, layOutWhole, type Part, paragraph, section, table } from "../explain/text.ts";
import { OwnAccessDenied } from "../kube/access-error.ts";
import type { Mistake } from "../render/documents.ts";
import { type ObjectChange, type Operation, opened } from "./changes.ts";

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

/** The account of a binding does not exist yet, so the user plans the binding. */
export interface MissingAccount extends Reason {
  /** Creates the account with its permissions. */
  command: string;
}

export interface BindingChange {
  /** "namespace/name". */
  binding: string;
  composition?: string;
  /** Whose permissions the dry runs used: the account, or "you". */
  as: string;
  account?: MissingAccount;
  /** The binding itself. */
  own: ObjectChange;
  /** Why its targets are unknown. */
  problem?: Advice;
  targets: TargetChange[];
}

export interface Difference {
  /** Inlay's own objects other than bindings. */
  objects: (ObjectChange & { problem?: Advice })[];
  bindings: BindingChange[];
  notes: string[];
  mistakes: Mistake[];
}

type Opened<T extends ObjectChange> = Omit<T, "patch"> & { patch: Operation[] };

export type OpenDifference = Omit<Difference, "objects" | "bindings"> & {
  objects: Opened<Difference["objects"][number]>[];
  bindings: (Omit<BindingChange, "own" | "targets"> & { own: Opened<ObjectChange>; targets: Opened<TargetChange>[] })[];
};

/** With the values of patches, or with `(hidden)` in place of each. */
export function openDifference({ objects, bindings, ...rest }: Difference, showValues: boolean): OpenDifference {
  const open = <T extends ObjectChange>(object: T): Opened<T> => ({
    ...object,
    patch: opened(object.patch, showValues),
  });
  return {
    objects: objects.map(open),
    bindings: bindings.map((each) => ({ ...each, own: open(each.own), targets: each.targets.map(open) })),
    ...rest,
  };
}

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
  [...objects, ...bindings.flatMap(({ own, targets }) => [own, ...targets])].some(({ change }) => change !== "none");

/** Whether something could not be compared: by a mistake, or because the user lacks a permission. */
export const isIncomplete = ({ objects, bindings, mistakes }: OpenDifference): boolean =>
  mistakes.length > 0 ||
  [...objects, ...bindings].some(({ problem }) => problem !== undefined) ||
  bindings.some(({ as, targets }) => as === YOU && targets.some(({ problem }) => problem?.reason === "Forbidden"));

export function differenceText({ objects, bindings, notes }: OpenDifference, width: number): string[] {
  const parts = [
    ...objects.filter(({ change, problem }) => change !== "none" || problem).flatMap((each) => objectLines(each, [])),
    ...bindings.flatMap(bindingLines),
    ...section("NOTES", notes.map(paragraph)),
  ];
  return layOutWhole(parts, width);
}

function bindingLines({ own, as, account, composition, problem, targets }: OpenDifference["bindings"][number]): Part[] {
  const shown = targets.filter((each) => each.change !== "none" || each.problem !== undefined);
  if (own.change === "none" && shown.length === 0 && (problem ?? account) === undefined) return [];
  const of = composition === undefined ? [] : [`of composition ${composition}`];
  return [
    ...objectLines({ ...own, ...(problem && { problem }) }, [...of, `dry runs as ${as}`]),
    ...(account === undefined
      ? []
      : indented([paragraph(`${account.reason}: ${account.message}; create it with:`), `  ${account.command}`], 2)),
    ...shown.flatMap((each) =>
      indented(objectLines(each, each.when === "AfterRollout" ? ["after the rollout"] : []), 2),
    ),
  ];
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
