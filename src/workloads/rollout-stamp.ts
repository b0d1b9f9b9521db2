/**
 * The stamp that a restart writes to a pod template, such as `12-3fa9c1-09ab34de12`: the number of the binding's rollout, a hash
 * of the binding, and a hash of the values. It is the record of the restart: after a crash it shows what was done. No I/O.
 */
import { createHash } from "node:crypto";

const STAMP = /^(\d{1,15})-([0-9a-f]{6})-[0-9a-f]{10}$/;
const MARK = /^(\d{1,20}|\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d))$/;

/** The same for the same restart, and different for every other restart. `values` are keyed digests. */
export function stampOf(binding: string, revision: number, values: readonly string[]): string {
  return `${revision}-${tagOf(binding)}-${hash(values.join("\n")).slice(0, 10)}`;
}

/** A stamp, a time, or the version of an object: what a restart writes to an annotation of a pod template. */
export const isMark = (text: string): boolean => text.length <= 40 && (isStamp(text) || MARK.test(text));

export const isStamp = (text: string): boolean => STAMP.test(text);

/** Whether a stamp belongs to that rollout of that binding. */
export function isStampOf(stamp: string, binding: string, revision: number): boolean {
  const [, number, tag] = STAMP.exec(stamp) ?? [];
  return number === String(revision) && tag === tagOf(binding);
}

/** Whether a stamp belongs to any rollout of that binding. */
export const isStampOfBinding = (stamp: string, binding: string): boolean => STAMP.exec(stamp)?.[2] === tagOf(binding);

const tagOf = (binding: string) => hash(binding).slice(0, 6);
const hash = (text: string) => createHash("sha256").update(text).digest("hex");
