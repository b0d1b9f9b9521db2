/** The bindings that Kyverno's rules about one Secret or ConfigMap become: its copies, its protection and the restarts. Pure. */
import { sameJson } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import type { Input, Output } from "./migration.ts";
import { compact, sourceField } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

export interface Draft {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly inputs: Set<Input>;
  readonly notes: Set<string>;
  readonly targets: JsonObject[];
  writers?: JsonObject[];
  rollout?: JsonObject;
  /** What selects the objects of a rule is not understood. */
  isIncomplete?: boolean;
}

/** Kyverno denies what any rule denies, so only those that all rules about the object except may write it. */
export function protect(draft: Draft, writers: readonly JsonObject[]): void {
  const isExcepted = (each: JsonObject) => writers.some((writer) => sameJson(writer, each));
  draft.writers = draft.writers?.filter(isExcepted) ?? [...writers];
}

/** Matches no name. */
export const NOTHING: JsonObject = { names: ["*"], exceptNames: ["*"] };

export class Drafts {
  readonly #drafts = new Map<string, Draft>();
  readonly #excepted: ReadonlySet<string>;

  /** `excepted` are the names of policies that a PolicyException restricts. */
  constructor(excepted: ReadonlySet<string> = new Set()) {
    this.#excepted = excepted;
  }

  /** Whether all of what a rule of the policy selects is converted. Call it after the conversion; what is in `except` selects nothing. */
  isUnderstood(input: Input, rule: Tracked, except: readonly Tracked[] = []): boolean {
    const spec = input.root.field("spec");
    const others = ["rules", "generateExisting", "generateExistingOnPolicyUpdate", "validationFailureAction"];
    return (
      rule.isWhole(except) && spec.isWhole(others.map((field) => spec.field(field))) && !this.#excepted.has(input.name)
    );
  }

  of(kind: string, namespace: string, name: string, input: Input): Draft {
    const key = `${kind} ${namespace}/${name}`;
    const draft = this.#drafts.get(key) ?? { kind, namespace, name, inputs: new Set(), notes: new Set(), targets: [] };
    this.#drafts.set(key, draft);
    draft.inputs.add(input);
    return draft;
  }

  all(): Draft[] {
    return [...this.#drafts.values()];
  }

  /** What a rule selects is not understood: its part of the drafts selects nothing, and the bindings are suspended. */
  selectNothing(input: Input, drafts: readonly Draft[], part: string): void {
    if (this.#excepted.has(input.name))
      input.root.lose("a PolicyException restricts this policy; write what it leaves out by hand");
    for (const draft of drafts) {
      draft.inputs.add(input);
      draft.isIncomplete = true;
      draft.notes.add(`${part} Inlay does not know all of what the policy ${input.name} selects: write it by hand.`);
    }
  }

  write(output: Output): void {
    for (const draft of this.all()) {
      const { kind, namespace, name, inputs, notes, targets, writers, rollout, isIncomplete = false } = draft;
      if (targets.length === 0 && rollout === undefined && writers === undefined && !isIncomplete) continue;
      const source = compact({
        [sourceField(kind)]: { name },
        protect: writers === undefined ? undefined : writers.length > 0 ? { writers } : {},
      });
      const spec = compact({
        acknowledge: targets.some(isCopy) ? ["ReadableCopies"] : undefined,
        sources: [source],
        targets: targets.length > 0 ? targets : undefined,
        // A binding needs a target or a rollout.
        rollout: rollout ?? (targets.length === 0 ? withoutRestarts(name) : undefined),
      });
      if (rollout === undefined && targets.length === 0 && !isIncomplete)
        notes.add("The rollout restarts nothing: a binding that only protects a Secret needs one.");
      const labels = writers === undefined ? {} : { labels: { "inlay.dev/protects": "true" } };
      output.add("SecretBinding", { name, namespace, ...labels }, spec, [...inputs], [...notes]);
    }
  }
}

export const isCopy = ({ apiVersion, kind }: JsonObject): boolean =>
  apiVersion === "v1" && (kind === "Secret" || kind === "ConfigMap");

const withoutRestarts = (source: string): JsonObject => ({ consumersOf: [source], suspend: true });
