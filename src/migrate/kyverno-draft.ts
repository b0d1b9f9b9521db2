/** The bindings that Kyverno's rules about one Secret or ConfigMap become: its copies, its protection and the restarts. Pure. */
import { listAt } from "../apimachinery/fields.ts";
import { sameJson } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { keyOf } from "./known-objects.ts";
import type { Input, Output } from "./migration.ts";
import { compact, isData, nonEmpty, sourceField } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

export interface Draft {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly inputs: Set<Input>;
  readonly notes: Set<string>;
  readonly targets: JsonObject[];
  protection?: Protection;
  rollout?: JsonObject;
  /** What selects the objects of a rule is not understood. */
  isIncomplete?: boolean;
}

/** Who may write an object, by the exceptions of a rule. */
export interface Protection {
  readonly writers: readonly JsonObject[];
  /** The names of ClusterRoles whose users may write it. */
  readonly roles: readonly string[];
  readonly message: string | undefined;
}

/** The verb that a converted ClusterRole must have. */
const WRITER_VERB = "change-protected";
const MAX_MESSAGE = 512;

/** Kyverno denies what any rule denies, so only those that all rules about the object except may write it. */
export function protect(draft: Draft, { writers, roles, message }: Protection): void {
  const before = draft.protection ?? { writers, roles, message };
  draft.protection = {
    writers: before.writers.filter((each) => writers.some((writer) => sameJson(writer, each))),
    roles: before.roles.filter((each) => roles.includes(each)),
    message: before.message ?? message,
  };
}

/** The message of a rule, if it is a sentence of `protect`. A variable of Kyverno has no value there. */
export function messageIn(rule: Tracked): string | undefined {
  const message = rule.field("message").text()?.trim().replaceAll(/\s+/g, " ");
  if (message === undefined || message === "" || message.includes("{{")) return undefined;
  return message.slice(0, MAX_MESSAGE);
}

/** A composition that creates a binding with the spec for each Secret or ConfigMap that it selects. The object is the source. */
export function compositionOf(
  name: string,
  selection: Record<"namespaceSelector" | "selector", JsonObject | undefined> & { readonly kind: string },
  { acknowledge, ...spec }: JsonObject,
  reach?: "Cluster",
): JsonObject {
  const field = sourceField(selection.kind);
  const targets = listAt(spec, "targets");
  const names = [`spec.sources[0].${field}.name`, ...targets.map((_, at) => `spec.targets[${at}].name`)];
  const base = { spec: compact({ acknowledge, sources: [{ name: "source", [field]: {} }], ...spec }) };
  const patches = names.map((toFieldPath) => ({ fromFieldPath: "metadata.name", toFieldPath }));
  return compact({ for: compact({ apiVersion: "v1", ...selection }), reach, bindings: [{ name, base, patches }] });
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
    const key = keyOf({ kind, namespace, name });
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
      const { kind, namespace, name, inputs, notes, targets, protection, rollout, isIncomplete = false } = draft;
      if (targets.length === 0 && rollout === undefined && protection === undefined && !isIncomplete) continue;
      const source = compact({ [sourceField(kind)]: { name }, protect: protection && protectOf(protection) });
      const spec = compact({
        acknowledge: targets.some(isCopy) ? ["ReadableCopies"] : undefined,
        sources: [source],
        targets: nonEmpty(targets),
        // A binding needs a target, a rollout or a protection.
        rollout: rollout ?? (targets.length === 0 && protection === undefined ? withoutRestarts(name) : undefined),
      });
      for (const role of protection?.roles ?? []) {
        const rule = `{apiGroups: [""], resources: [${sourceField(kind).toLowerCase()}s], resourceNames: [${name}], verbs: [${WRITER_VERB}]}`;
        notes.add(`Users with the ClusterRole ${role} may change it once that role has the rule ${rule}.`);
      }
      const labels = protection === undefined ? {} : { labels: { "inlay.dev/protects": "true" } };
      output.add("SecretBinding", { name, namespace, ...labels }, spec, [...inputs], [...notes]);
    }
  }
}

const protectOf = ({ writers, roles, message }: Protection): JsonObject =>
  compact({
    writers: nonEmpty(writers),
    writerVerb: roles.length > 0 ? WRITER_VERB : undefined,
    message,
  });

export const isCopy = ({ apiVersion, kind }: JsonObject): boolean => isData(apiVersion, kind);

const withoutRestarts = (source: string): JsonObject => ({ consumersOf: [source], suspend: true });
