/** The bindings that Kyverno's rules about one Secret or ConfigMap become: its copies, its protection and the restarts. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import type { Input, Output } from "./migration.ts";
import { compact, sourceField } from "./parts.ts";

export interface Draft {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly inputs: Set<Input>;
  readonly notes: Set<string>;
  readonly targets: JsonObject[];
  writers?: JsonObject[];
  rollout?: JsonObject;
}

export class Drafts {
  readonly #drafts = new Map<string, Draft>();

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

  write(output: Output): void {
    for (const { kind, namespace, name, inputs, notes, targets, writers, rollout } of this.all()) {
      if (targets.length === 0 && rollout === undefined && writers === undefined) continue;
      const source = compact({
        [sourceField(kind)]: { name },
        protect: writers === undefined ? undefined : writers.length > 0 ? { writers } : {},
      });
      const spec = compact({
        acknowledge: targets.length > 0 ? ["ReadableCopies"] : undefined,
        sources: [source],
        targets: targets.length > 0 ? targets : undefined,
        // A binding needs a target or a rollout.
        rollout: rollout ?? (targets.length === 0 ? withoutRestarts(name) : undefined),
      });
      if (rollout === undefined && targets.length === 0)
        notes.add("The rollout restarts nothing: a binding that only protects a Secret needs one.");
      const labels = writers === undefined ? {} : { labels: { "inlay.dev/protects": "true" } };
      output.add("SecretBinding", { name, namespace, ...labels }, spec, [...inputs], [...notes]);
    }
  }
}

const withoutRestarts = (source: string): JsonObject => ({ consumersOf: [source], suspend: true });
