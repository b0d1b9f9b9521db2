/**
 * What a workload says to Reloader by annotations comes in; which Secrets, ConfigMaps and SecretProviderClasses it restarts for
 * goes out, as a rule for each of them, and what of the annotations says nothing. Pure. It reads them as Reloader does: those of the pod
 * template count for a kind of which the workload itself says nothing.
 */
import type { ReloaderAnnotations, Texts } from "../../api/reloader.ts";
import { parseDuration } from "../../apimachinery/duration.ts";
import { attemptSync, Problem } from "../../apimachinery/problem.ts";

export type ReloaderSourceKind = "Secret" | "ConfigMap";
export const SOURCE_KINDS = ["Secret", "ConfigMap"] as const satisfies readonly ReloaderSourceKind[];
/** A class stands for the Secrets that it writes. */
export type ChosenKind = ReloaderSourceKind | "SecretProviderClass";
const CHOSEN_KINDS = [...SOURCE_KINDS, "SecretProviderClass"] as const satisfies readonly ChosenKind[];

/** Of one kind. */
export interface Rule {
  /** All that the pods refer to. */
  auto: boolean;
  /** Of what the pods refer to, that which is marked. */
  search: boolean;
  /** Names and patterns, whether the pods refer to them or not. */
  listed: readonly string[];
  /** What is left out whatever else is said. */
  excluded: ReadonlySet<string>;
  /** What says so says it of this kind alone. */
  isOwn: boolean;
}

export interface ReloadRules {
  rules: Readonly<Record<ChosenKind, Rule>>;
  /** How long it is at least between two restarts, as a binding has it. */
  minInterval: string | undefined;
  /** It restarts by a field of its own, without another template. */
  restartAt: boolean;
  /** What is wrong with the annotations, for people: each says what to do. */
  mistakes: readonly string[];
}

export const AUTO = "reloader.stakater.com/auto";
const SEARCH = "reloader.stakater.com/search";
const STRATEGY = "reloader.stakater.com/rollout-strategy";
const PAUSE = "deployment.reloader.stakater.com/pause-period";

const keysOf = (kind: string, plural: string) => ({
  auto: `${kind}.reloader.stakater.com/auto`,
  listed: `${kind}.reloader.stakater.com/reload`,
  excluded: `${plural}.exclude.reloader.stakater.com/reload`,
});
const typed = {
  Secret: keysOf("secret", "secrets"),
  ConfigMap: keysOf("configmap", "configmaps"),
  SecretProviderClass: keysOf("secretproviderclass", "secretproviderclasses"),
} as const satisfies Record<ChosenKind, object>;

const BOOLEANS: readonly string[] = [AUTO, SEARCH, ...CHOSEN_KINDS.map((kind) => typed[kind].auto)];
const KNOWN = new Set([
  ...BOOLEANS,
  STRATEGY,
  PAUSE,
  ...CHOSEN_KINDS.flatMap((kind) => [typed[kind].listed, typed[kind].excluded]),
]);

/** As Go reads a truth. */
const TRUE = ["1", "t", "T", "TRUE", "true", "True"];
const FALSE = ["0", "f", "F", "FALSE", "false", "False"];

/** As bindings write it. */
const INTERVAL = /^([0-9]+(ms|s|m|h))+$/;
const MAX_INTERVAL_LENGTH = 32;

/**
 * Undefined for a workload that restarts for nothing and says nothing wrong. `reloadAll`: who says nothing means `auto`. That a
 * Job runs once more has to be said.
 */
export function choiceOf(
  kind: string,
  annotations: ReloaderAnnotations | undefined,
  reloadAll: boolean,
): ReloadRules | undefined {
  const { own, pods } = annotations ?? { own: {}, pods: {} };
  const autoReloadAll = reloadAll && kind !== "Job";
  const rules = {
    Secret: ruleOf("Secret", own, pods, autoReloadAll),
    ConfigMap: ruleOf("ConfigMap", own, pods, autoReloadAll),
    SecretProviderClass: ruleOf("SecretProviderClass", own, pods, autoReloadAll),
  };
  const mistakes: string[] = [];
  const minInterval = intervalOf(kind, own, mistakes);
  checkAll({ ...pods, ...own }, mistakes);
  const isNothing = CHOSEN_KINDS.every((each) => isIdle(rules[each]));
  // All others restart by their template alone.
  const restartAt = kind === "Rollout" && own[STRATEGY] === "restart";
  return isNothing && mistakes.length === 0 ? undefined : { rules, minInterval, restartAt, mistakes };
}

function ruleOf(kind: ChosenKind, own: Texts, pods: Texts, autoReloadAll: boolean): Rule {
  const { auto, listed, excluded } = typed[kind];
  const texts = [listed, SEARCH, AUTO, auto].some((key) => own[key] !== undefined) ? own : pods;
  const autos = [texts[AUTO] ?? "", texts[auto] ?? ""];
  const list = listOf(texts[listed]);
  return {
    auto: autos.some((text) => TRUE.includes(text)) || (autoReloadAll && autos.every((text) => text === "")),
    search: texts[SEARCH] === "true",
    listed: list,
    excluded: new Set([...listOf(own[excluded]), ...listOf(texts[excluded])]),
    isOwn: list.length > 0 || TRUE.includes(texts[auto] ?? ""),
  };
}

const isIdle = ({ auto, search, listed }: Rule) => !auto && !search && listed.length === 0;

const listOf = (text = "") =>
  text
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "");

function intervalOf(kind: string, own: Texts, mistakes: string[]): string | undefined {
  const text = own[PAUSE];
  if (text === undefined) return undefined;
  if (kind !== "Deployment") {
    mistakes.push(
      `${PAUSE} is for Deployments; take it out of this ${kind}, or name its Secrets in a SecretBinding with minInterval`,
    );
    return undefined;
  }
  const ms = attemptSync(() => parseDuration(text, PAUSE));
  if (!(ms instanceof Problem)) return INTERVAL.test(text) && text.length <= MAX_INTERVAL_LENGTH ? text : `${ms}ms`;
  mistakes.push(ms.message);
  return undefined;
}

function checkAll(texts: Texts, mistakes: string[]): void {
  for (const [key, text] of Object.entries(texts).sort()) {
    if (!KNOWN.has(key)) mistakes.push(`${key} is not known; see docs/rollouts.md for those that are`);
    // Only the very word is taken for a search.
    else if (key === SEARCH ? !["true", "false"].includes(text) : BOOLEANS.includes(key) && !isTruth(text))
      mistakes.push(`${key}: ${shown(text)} is neither true nor false; write "true"`);
    else if (key === STRATEGY && !["rollout", "restart"].includes(text))
      mistakes.push(`${key}: ${shown(text)} is no strategy; write "rollout", or take it out`);
  }
}

const isTruth = (text: string) => TRUE.includes(text) || FALSE.includes(text);

const MAX_SHOWN_LENGTH = 80;
/** What somebody wrote, for people. */
export const shown = (text: string): string =>
  JSON.stringify(text.length > MAX_SHOWN_LENGTH ? `${text.slice(0, MAX_SHOWN_LENGTH)}…` : text);

/** The key of the annotation that lists sources of a kind. */
export const listedBy = (kind: ChosenKind): string => typed[kind].listed;
