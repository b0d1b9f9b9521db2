/** The messages for bindings that are too large to be kept. Pure. */
import type { StoredBinding } from "../../api/binding.ts";
import type { Limits } from "../../api/limits.ts";
import { bindingLength } from "../../api/stub.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { Excess } from "../../cache/binding-room.ts";

/** The problem of a binding of which Inlay keeps only a stub. */
export function tooLarge({ limit, bytes }: Excess, limits: Limits): Problem {
  const kept = "until then, nothing is written or restarted, and the values that were written stay";
  const size = sizeText(bytes);
  const message =
    limit === "bindingBytes"
      ? `the binding has ${size} with its status, and Inlay keeps at most ${sizeText(limits.bindingBytes)} of one binding (limits.bindingBytes); split it into several bindings; ${kept}`
      : `the binding has ${size} with its status, and Inlay keeps at most ${sizeText(limits.bindingBytesPerNamespace)} of all bindings of a namespace, the oldest first (limits.bindingBytesPerNamespace); delete bindings that are not needed, or make older ones smaller; ${kept}`;
  return new Problem("TooLarge", message);
}

/** Why a binding with its new status is too large to be kept; undefined if it is not. */
export function excessText(stored: StoredBinding, { bindingBytes }: Pick<Limits, "bindingBytes">): string | undefined {
  const bytes = bindingLength(stored);
  if (bytes <= bindingBytes) return undefined;
  return `the binding has ${sizeText(bytes)}, and Inlay keeps at most ${sizeText(bindingBytes)} of one binding (limits.bindingBytes)`;
}

const KIB = 1024;
const sizeText = (bytes: number): string => `${Math.ceil(bytes / KIB).toLocaleString("en")} KiB`;
