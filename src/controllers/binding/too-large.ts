/** The messages for bindings that are too large to be kept. Pure. */
import type { StoredBinding } from "../../api/binding.ts";
import type { Limits } from "../../api/limits.ts";
import { bindingLength } from "../../api/stub.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { type Excess, MAX_OWNED_FIELDS } from "../../cache/binding-room.ts";

/** The problem of a binding of which Inlay keeps only a stub. */
export function tooLarge({ limit, bytes, fields }: Excess, limits: Limits): Problem {
  const kept = "until then, nothing is written or restarted, and the values that were written stay";
  const size = sizeText(bytes);
  const less = `delete bindings that are not needed, or make older ones smaller; ${kept}`;
  const messages: Record<Excess["limit"], string> = {
    bindingBytes: `the binding has ${size} with its status, and Inlay keeps at most ${sizeText(limits.bindingBytes)} of one binding (limits.bindingBytes); split it into several bindings; ${kept}`,
    bindingBytesPerNamespace: `the binding has ${size} with its status, and Inlay keeps at most ${sizeText(limits.bindingBytesPerNamespace)} of all bindings of a namespace, the oldest first (limits.bindingBytesPerNamespace); ${less}`,
    ownedFields: `the binding owns ${numberText(fields)} fields of objects, and all bindings of a namespace may own at most ${numberText(MAX_OWNED_FIELDS)}, the oldest first; ${less}`,
  };
  return new Problem("TooLarge", messages[limit]);
}

/** Why a binding with its new status is too large to be kept; undefined if it is not. */
export function excessText(stored: StoredBinding, { bindingBytes }: Pick<Limits, "bindingBytes">): string | undefined {
  const bytes = bindingLength(stored);
  if (bytes <= bindingBytes) return undefined;
  return `the binding has ${sizeText(bytes)}, and Inlay keeps at most ${sizeText(bindingBytes)} of one binding (limits.bindingBytes)`;
}

const KIB = 1024;
const numberText = (count: number): string => count.toLocaleString("en");
const sizeText = (bytes: number): string => `${numberText(Math.ceil(bytes / KIB))} KiB`;
