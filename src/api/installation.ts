/**
 * What whoever installed Inlay says of all bindings, whatever their accounts may do: what a binding would write comes in,
 * and why it may not goes out, if it may not. Pure.
 */
import type { FieldPath } from "../apimachinery/field-path.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, Resource } from "../apimachinery/objects.ts";
import { mayOverlap } from "../apimachinery/path-overlap.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { ReceiverRules } from "./notification-rules.ts";
import type { ReloaderRules } from "./reloader-rules.ts";
import { VaultAddresses } from "./vault-addresses.ts";

/** What to match; all that is given has to. Groups, kinds and namespaces are globs; a path means all that is below it too. */
export interface WriteRule {
  readonly apiGroups?: readonly string[];
  readonly kinds?: readonly string[];
  /** No object that belongs to the cluster is in any. */
  readonly namespaces?: readonly string[];
  readonly paths?: readonly FieldPath[];
  /** What to tell those whom it refuses. */
  readonly message?: string;
}

/** What a binding may have to acknowledge before it is acted upon. */
export type Acknowledgement = "ReadableCopies";

/** Of all rollouts together. */
export interface RolloutRules {
  /** The kill switch: no workload begins to roll while it is on. */
  readonly suspend: boolean;
  /** How many workloads may roll at once; without it, as many as bindings let. */
  readonly maxConcurrent?: number;
  readonly maxConcurrentPerNamespace?: number;
}

export interface InstallationRules {
  /** Where the controller runs. */
  readonly ownNamespace: string;
  /** The one namespace that it is for; without it, the whole cluster. */
  readonly scope?: string | undefined;
  /** Which of the closed namespaces are open after all. */
  readonly allowSystemNamespaces?: readonly string[];
  readonly deny?: readonly WriteRule[];
  /** Without any, all is allowed that is not denied. */
  readonly allow?: readonly WriteRule[];
  readonly requireAcknowledgement?: readonly Acknowledgement[];
  readonly rollouts?: RolloutRules;
  /** Without it, those annotations are not looked at. */
  readonly reloader?: ReloaderRules | undefined;
  /** Who is notified of restarts; no one without it. */
  readonly notifications?: readonly ReceiverRules[];
  /** The servers to which VaultConnections may lead; none without it. */
  readonly vaultAddresses?: VaultAddresses;
}

/** Everything that one target writes. */
export interface TargetWrites {
  readonly paths: readonly FieldPath[];
  readonly manifest?: JsonObject;
}

type Kind = Pick<Resource, "group" | "kind">;

/** In place of a namespace, where it is not known yet in which: what holds in any of them. */
export const SOME_NAMESPACE = Symbol("some namespace");
/** Undefined for what belongs to the cluster. */
export type Where = string | undefined | typeof SOME_NAMESPACE;

const KUBE_SYSTEM = "kube-system";
const ASK = "ask whoever installed Inlay in this cluster";

export class Installation {
  /** The one namespace that it is for; undefined for the whole cluster. */
  readonly scope: string | undefined;
  /** Where the controller runs. */
  readonly ownNamespace: string;
  readonly reloader: ReloaderRules | undefined;
  readonly notifications: readonly ReceiverRules[];
  readonly vaultAddresses: VaultAddresses;
  readonly #isReloading: (namespace: string) => boolean;
  readonly #closed: ReadonlySet<string>;
  readonly #deny: readonly Matcher[];
  readonly #allow: readonly Matcher[];
  readonly #requireAcknowledgement: readonly Acknowledgement[];
  readonly #listeners: (() => void)[] = [];
  #rollouts: RolloutRules;

  /** Throws Error for an open namespace that is not closed anyway: it would be a mistake. */
  constructor(rules: InstallationRules) {
    const { ownNamespace, scope, reloader, allowSystemNamespaces = [], deny = [], allow = [] } = rules;
    this.scope = scope;
    this.ownNamespace = ownNamespace;
    this.reloader = reloader;
    this.notifications = rules.notifications ?? [];
    this.vaultAddresses = rules.vaultAddresses ?? new VaultAddresses([]);
    this.#isReloading = nameMatcher(reloader?.namespaces ?? [], reloader?.exceptNamespaces);
    if (scope !== undefined && reloader?.namespaceSelector !== undefined) {
      const why = `this Inlay is for the namespace ${scope} alone, and sees no labels of namespaces; leave it out`;
      throw new Error(`reloader.namespaceSelector: ${why}`);
    }
    // Who installs it for the namespace in which it runs means that one.
    const closed = new Set(scope === ownNamespace ? [KUBE_SYSTEM] : [KUBE_SYSTEM, ownNamespace]);
    const mistaken = allowSystemNamespaces.find((each) => !closed.has(each));
    if (mistaken !== undefined) {
      const known = [...closed].join(" and ");
      throw new Error(`allowSystemNamespaces: ${mistaken} is not closed; of ${known} it says which are open`);
    }
    this.#closed = new Set([...closed].filter((each) => !allowSystemNamespaces.includes(each)));
    this.#deny = deny.map((rule) => new Matcher(rule));
    this.#allow = allow.map((rule) => new Matcher(rule));
    this.#requireAcknowledgement = rules.requireAcknowledgement ?? [];
    this.#rollouts = rules.rollouts ?? { suspend: false };
  }

  /** The one part that may be another the next time: ask right before it matters. */
  get rollouts(): RolloutRules {
    return this.#rollouts;
  }

  /** Takes other rules for rollouts, and tells whoever listens. */
  replaceRollouts(rollouts: RolloutRules): void {
    this.#rollouts = rollouts;
    for (const listener of this.#listeners) listener();
  }

  onRollouts(changed: () => void): void {
    this.#listeners.push(changed);
  }

  /** Why nothing is done for bindings that stand in a namespace, and nothing is read or written there. */
  closedNamespace(namespace: string | undefined): Problem | undefined {
    if (namespace === undefined || !this.#closed.has(namespace)) return undefined;
    const why = `no binding acts, reads or writes in the namespace ${namespace} unless the installation opens it (allowSystemNamespaces)`;
    return new Problem("ForbiddenNamespace", `${why}; ${ASK}`);
  }

  /** Whether workloads in a namespace are restarted by annotations of Reloader, if it has the labels for that. */
  isReloading(namespace: string): boolean {
    if (!this.#isReloading(namespace) || this.#closed.has(namespace)) return false;
    return this.scope === undefined || this.scope === namespace;
  }

  /** Why a target may not be written there. */
  refusal(kind: Kind, where: Where, writes: TargetWrites): Problem | undefined {
    const closed = where === SOME_NAMESPACE ? undefined : this.closedNamespace(where);
    if (closed !== undefined) return closed;
    const what = describe(kind, where);
    for (const [position, matcher] of this.#deny.entries()) {
      const denied = matcher.isAt(kind, where, false) ? matcher.touched(writes) : undefined;
      if (denied === undefined) continue;
      const why = matcher.rule.message ?? ASK;
      const which = denied === "all" ? what : `${denied} of ${what}`;
      const message = `the installation denies writing ${which} (targets.deny[${position}]); ${why}`;
      return new Problem(matcher.reason, message);
    }
    if (this.#allow.length === 0) return undefined;
    const ofKind = this.#allow.filter((rule) => rule.isKind(kind));
    const there = ofKind.filter((rule) => rule.isAt(kind, where, true));
    const outside = there.length === 0 ? undefined : firstOutside(there, writes);
    if (there.length > 0 && outside === undefined) return undefined;
    const [reason, which] =
      ofKind.length === 0
        ? (["ForbiddenKind", `${kind.kind} of ${groupName(kind)}`] as const)
        : there.length === 0
          ? (["ForbiddenNamespace", what] as const)
          : (["ForbiddenPath", `${outside} of ${what}`] as const);
    return new Problem(reason, `the installation does not allow writing ${which} (targets.allow); ${ASK}`);
  }

  /** Whether a binding has to say that before it is acted upon. */
  requires(acknowledgement: Acknowledgement): boolean {
    return this.#requireAcknowledgement.includes(acknowledgement);
  }
}

/** The namespace that a write to an object is about: to a Namespace, it is that one. Without a name, it is not known which. */
export function whereOf({ group, kind }: Kind, namespace: string | undefined, name: string | undefined): Where {
  return group === "" && kind === "Namespace" ? (name ?? SOME_NAMESPACE) : namespace;
}

class Matcher {
  readonly rule: WriteRule;
  readonly #isGroup: (name: string) => boolean;
  readonly #isKind: (name: string) => boolean;
  readonly #isNamespace: (name: string) => boolean;

  constructor(rule: WriteRule) {
    this.rule = rule;
    this.#isGroup = nameMatcher(rule.apiGroups);
    this.#isKind = nameMatcher(rule.kinds);
    this.#isNamespace = nameMatcher(rule.namespaces);
  }

  /** What it is about in the end. */
  get reason(): "ForbiddenPath" | "ForbiddenNamespace" | "ForbiddenKind" {
    if (this.rule.paths !== undefined) return "ForbiddenPath";
    return this.rule.namespaces === undefined ? "ForbiddenKind" : "ForbiddenNamespace";
  }

  isKind({ group, kind }: Kind): boolean {
    return this.#isGroup(group) && this.#isKind(kind);
  }

  /** `some` is the answer where it is not known yet in which namespace. */
  isAt(kind: Kind, where: Where, some: boolean): boolean {
    if (!this.isKind(kind)) return false;
    if (this.rule.namespaces === undefined) return true;
    if (where === SOME_NAMESPACE) return some;
    return where !== undefined && this.#isNamespace(where);
  }

  /** What of the writes may change what the rule's paths name, be it around it; `all` for a rule without paths. */
  touched({ paths, manifest }: TargetWrites): FieldPath | "all" | undefined {
    if (this.rule.paths === undefined) return "all";
    return this.rule.paths.find(
      (denied) =>
        paths.some((path) => mayOverlap(path, denied)) || (manifest !== undefined && standsIn(manifest, denied)),
    );
  }
}

/** Whether something of a manifest is at a path, or around it as one value. */
function standsIn(manifest: JsonObject, path: FieldPath): boolean {
  let value: JsonValue | undefined = manifest;
  for (const segment of path.segments) {
    if (!isObject(value) || segment.kind !== "key") return value !== undefined;
    value = Object.hasOwn(value, segment.key) ? value[segment.key] : undefined;
  }
  return value !== undefined;
}

/** What of the writes none of the rules has among its paths. */
function firstOutside(rules: readonly Matcher[], { paths, manifest }: TargetWrites): string | undefined {
  const allowed: FieldPath[] = [];
  for (const { rule } of rules) {
    if (rule.paths === undefined) return undefined;
    allowed.push(...rule.paths);
  }
  const outside = paths.find((path) => !allowed.some((each) => path.startsWith(each)));
  return outside === undefined ? manifest && outsideIn(manifest, allowed, []) : String(outside);
}

function outsideIn(value: JsonValue, allowed: readonly FieldPath[], keys: readonly string[]): string | undefined {
  const isAllowed = allowed.some(
    ({ segments }) =>
      segments.length <= keys.length && segments.every((each, at) => each.kind === "key" && each.key === keys[at]),
  );
  if (isAllowed) return undefined;
  const below = isObject(value) ? Object.entries(value) : [];
  if (below.length === 0) return keys.length === 0 ? undefined : keys.join(".");
  for (const [key, child] of below) {
    const outside = outsideIn(child, allowed, [...keys, key]);
    if (outside !== undefined) return outside;
  }
  return undefined;
}

const groupName = ({ group }: Kind) => (group === "" ? "the core group" : group);

function describe(kind: Kind, where: Where): string {
  const place = typeof where === "string" ? ` in namespace ${where}` : "";
  return `${kind.kind} of ${groupName(kind)}${place}`;
}
