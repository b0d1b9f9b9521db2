/**
 * Applies the installation's rules to bindings: which kinds, namespaces and paths they may write, whatever their
 * accounts are allowed. Pure.
 */
import { parseDuration } from "../apimachinery/duration.ts";
import type { FieldPath } from "../apimachinery/field-path.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, Resource } from "../apimachinery/objects.ts";
import { mayOverlap } from "../apimachinery/path-overlap.ts";
import { Problem } from "../apimachinery/problem.ts";
import { DEFAULT_LIMITS, type Limits } from "./limits.ts";
import type { ReceiverRules } from "./notification-rules.ts";
import type { ReloaderRules } from "./reloader-rules.ts";
import { VaultAddresses } from "./vault-addresses.ts";

/** The namespace of an installation by deploy/. */
export const DEFAULT_NAMESPACE = "inlay-system";

/** The name of the Lease that the controller holds. */
export const LEASE_NAME = "inlay-controller";

/** The label of the CRDs and policies with the version that they belong to. */
export const VERSION_LABEL = "app.kubernetes.io/version";

/** The admission policy that denies changes of protected objects. */
export const PROTECTING_POLICY = "inlay-protect";

/** All given conditions must match. Groups, kinds and namespaces are globs. A path includes all fields below it. */
export interface WriteRule {
  readonly apiGroups?: readonly string[];
  readonly kinds?: readonly string[];
  /** Never matches cluster-scoped objects. */
  readonly namespaces?: readonly string[];
  readonly paths?: readonly FieldPath[];
  /** Printed in the refusal, in place of the standard advice. */
  readonly message?: string;
}

/** What a binding may have to acknowledge before Inlay reconciles it. */
export type Acknowledgement = "ReadableCopies";

/** Limits for all rollouts together. */
export interface RolloutRules {
  /** While it is set, no rollout begins. */
  readonly suspend: boolean;
  /** How many workloads may roll out at once. Without it, only the limits of the bindings count. */
  readonly maxConcurrent?: number;
  readonly maxConcurrentPerNamespace?: number;
  /** How often a workload may restart within maxRestartsWindow because of changing values. */
  readonly maxRestarts?: number | "Unlimited";
  /** A duration. */
  readonly maxRestartsWindow?: string;
}

/** How often a workload may restart because of changing values. */
export interface RestartLimit {
  readonly max: number;
  /** A duration, and the same in ms. */
  readonly window: string;
  readonly windowMs: number;
}

/** Undefined: restarts are not limited. */
export function restartLimitOf({ maxRestarts = 5, maxRestartsWindow = "10m" }: RolloutRules): RestartLimit | undefined {
  if (maxRestarts === "Unlimited") return undefined;
  return { max: maxRestarts, window: maxRestartsWindow, windowMs: parseDuration(maxRestartsWindow) };
}

export interface InstallationRules {
  /** The namespace of the controller. */
  readonly ownNamespace: string;
  /** The one namespace that Inlay is installed for. Without it, the whole cluster. */
  readonly scope?: string | undefined;
  /** The closed namespaces that the configuration opens. */
  readonly allowSystemNamespaces?: readonly string[];
  readonly deny?: readonly WriteRule[];
  /** Without any rule, everything is allowed that is not denied. */
  readonly allow?: readonly WriteRule[];
  readonly requireAcknowledgement?: readonly Acknowledgement[];
  readonly rollouts?: RolloutRules;
  /** Without it, Inlay ignores the annotations of Reloader. */
  readonly reloader?: ReloaderRules | undefined;
  /** The receivers of notifications. Without it, none. */
  readonly notifications?: readonly ReceiverRules[];
  /** The servers that VaultConnections may use. Without it, none. */
  readonly vaultAddresses?: VaultAddresses;
  /** The limits that differ from the defaults. */
  readonly limits?: Partial<Limits>;
}

/** Everything that one target writes. */
interface TargetWrites {
  readonly paths: readonly FieldPath[];
  readonly manifest?: JsonObject;
}

type Kind = Pick<Resource, "group" | "kind">;

/** In place of a namespace that is not known yet. A write is then refused only if it is refused in every namespace. */
export const SOME_NAMESPACE = Symbol("some namespace");
/** Undefined for cluster-scoped objects. */
export type Where = string | undefined | typeof SOME_NAMESPACE;

const KUBE_SYSTEM = "kube-system";
const ASK = "ask the administrator of Inlay in this cluster";

export class Installation {
  /** The one namespace that Inlay is installed for; undefined for the whole cluster. */
  readonly scope: string | undefined;
  /** The namespace of the controller. */
  readonly ownNamespace: string;
  readonly reloader: ReloaderRules | undefined;
  readonly notifications: readonly ReceiverRules[];
  readonly vaultAddresses: VaultAddresses;
  readonly limits: Limits;
  readonly #isReloading: (namespace: string) => boolean;
  readonly #closed: ReadonlySet<string>;
  readonly #deny: readonly Matcher[];
  readonly #allow: readonly Matcher[];
  readonly #requireAcknowledgement: readonly Acknowledgement[];
  readonly #listeners: (() => void)[] = [];
  #rollouts: RolloutRules;

  /** Throws Error if allowSystemNamespaces lists a namespace that is not closed: that is a mistake. */
  constructor(rules: InstallationRules) {
    const { ownNamespace, scope, reloader, allowSystemNamespaces = [], deny = [], allow = [] } = rules;
    this.scope = scope;
    this.ownNamespace = ownNamespace;
    this.reloader = reloader;
    this.notifications = rules.notifications ?? [];
    this.vaultAddresses = rules.vaultAddresses ?? new VaultAddresses([]);
    this.limits = { ...DEFAULT_LIMITS, ...rules.limits };
    this.#isReloading = nameMatcher(reloader?.namespaces ?? [], reloader?.exceptNamespaces);
    if (scope !== undefined && reloader?.namespaceSelector !== undefined) {
      const why = `this Inlay is installed for the namespace ${scope} only and can't read labels of namespaces; remove the field`;
      throw new Error(`reloader.namespaceSelector: ${why}`);
    }
    // An installation for the namespace in which the controller runs opens that namespace.
    const closed = new Set(scope === ownNamespace ? [KUBE_SYSTEM] : [KUBE_SYSTEM, ownNamespace]);
    const mistaken = allowSystemNamespaces.find((each) => !closed.has(each));
    if (mistaken !== undefined) {
      const known = [...closed].join(" and ");
      throw new Error(
        `allowSystemNamespaces: ${mistaken} is not a closed namespace; remove it. The field opens only ${known}`,
      );
    }
    this.#closed = new Set([...closed].filter((each) => !allowSystemNamespaces.includes(each)));
    this.#deny = deny.map((rule) => new Matcher(rule));
    this.#allow = allow.map((rule) => new Matcher(rule));
    this.#requireAcknowledgement = rules.requireAcknowledgement ?? [];
    this.#rollouts = rules.rollouts ?? { suspend: false };
  }

  /** The only rules that can change while the controller runs: read them right before use. */
  get rollouts(): RolloutRules {
    return this.#rollouts;
  }

  /** Replaces the rules for rollouts and calls the listeners. */
  replaceRollouts(rollouts: RolloutRules): void {
    this.#rollouts = rollouts;
    for (const listener of this.#listeners) listener();
  }

  onRollouts(changed: () => void): void {
    this.#listeners.push(changed);
  }

  /** Why Inlay ignores bindings in a namespace, and reads and writes nothing there. */
  closedNamespace(namespace: string | undefined): Problem | undefined {
    if (namespace === undefined || !this.#closed.has(namespace)) return undefined;
    const why = `the namespace ${namespace} is closed: no binding there is reconciled, and no binding reads or writes there, unless the configuration opens it (allowSystemNamespaces)`;
    return new Problem("ForbiddenNamespace", `${why}; ${ASK}`);
  }

  /** Whether Reloader's annotations restart workloads in a namespace. The namespace's labels are checked elsewhere. */
  isReloading(namespace: string): boolean {
    if (!this.#isReloading(namespace) || this.#closed.has(namespace)) return false;
    return this.scope === undefined || this.scope === namespace;
  }

  /** Why the installation refuses a write to a target. */
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

  /** Whether bindings must have that acknowledgement before Inlay reconciles them. */
  requires(acknowledgement: Acknowledgement): boolean {
    return this.#requireAcknowledgement.includes(acknowledgement);
  }
}

/**
 * The namespace that the rules compare with a write. For a Namespace object, it is that namespace; unknown without a
 * name.
 */
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

  /** The reason of a refusal: what the rule is most specific about. */
  get reason(): "ForbiddenPath" | "ForbiddenNamespace" | "ForbiddenKind" {
    if (this.rule.paths !== undefined) return "ForbiddenPath";
    return this.rule.namespaces === undefined ? "ForbiddenKind" : "ForbiddenNamespace";
  }

  isKind({ group, kind }: Kind): boolean {
    return this.#isGroup(group) && this.#isKind(kind);
  }

  /** `some` is the result if the namespace is not known yet. */
  isAt(kind: Kind, where: Where, some: boolean): boolean {
    if (!this.isKind(kind)) return false;
    if (this.rule.namespaces === undefined) return true;
    if (where === SOME_NAMESPACE) return some;
    return where !== undefined && this.#isNamespace(where);
  }

  /** The rule's first path that the writes may change, also by writing a parent; `all` for a rule without paths. */
  touched({ paths, manifest }: TargetWrites): FieldPath | "all" | undefined {
    if (this.rule.paths === undefined) return "all";
    return this.rule.paths.find(
      (denied) =>
        paths.some((path) => mayOverlap(path, denied)) || (manifest !== undefined && containsPath(manifest, denied)),
    );
  }
}

/** Whether a manifest has a value at a path, or one value in place of a parent of the path. */
function containsPath(manifest: JsonObject, path: FieldPath): boolean {
  let value: JsonValue | undefined = manifest;
  for (const segment of path.segments) {
    if (!isObject(value) || segment.kind !== "key") return value !== undefined;
    value = Object.hasOwn(value, segment.key) ? value[segment.key] : undefined;
  }
  return value !== undefined;
}

/** The first path of the writes that no rule allows. */
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
