/**
 * Parses Reloader's annotations of a workload into one rule for each kind of source, and a list of mistakes. Pure. As in
 * Reloader, the annotations of the pod template count for a kind for which the workload itself has none.
 */
import { MAX_TEXT_LENGTH, type ReloaderAnnotations, type Texts } from "../../api/reloader.ts";
import { RELOADER_KEYS, type ReloaderKeys, type ReloaderKind } from "../../api/reloader-rules.ts";
import { parseDuration } from "../../apimachinery/duration.ts";
import { quoted } from "../../apimachinery/objects.ts";
import { attemptSync, Problem } from "../../apimachinery/problem.ts";

type ReloaderSourceKind = "Secret" | "ConfigMap";
export const SOURCE_KINDS = ["Secret", "ConfigMap"] as const satisfies readonly ReloaderSourceKind[];
/** A SecretProviderClass represents the Secrets that it writes. */
export type ChosenKind = ReloaderSourceKind | "SecretProviderClass";
const CHOSEN_KINDS = [...SOURCE_KINDS, "SecretProviderClass"] as const satisfies readonly ChosenKind[];

/** The rule for one kind of source. */
export interface Rule {
  /** Every source that the pods refer to. */
  auto: boolean;
  /** Of the sources that the pods refer to, those with the match annotation. */
  search: boolean;
  /** Names and patterns, whether the pods refer to them or not. */
  listed: readonly string[];
  /** Names that are always excluded. */
  excluded: ReadonlySet<string>;
  /** The annotations name this kind specifically. */
  isOwn: boolean;
  /** No workload here restarts for this kind. */
  isIgnored: boolean;
  /** The key of the annotation that lists names. */
  listedBy: string;
}

export interface ReloadRules {
  rules: Readonly<Record<ChosenKind, Rule>>;
  /** The minimum time between two restarts, in the syntax of a binding. */
  minInterval: string | undefined;
  /** It restarts by its own field spec.restartAt, without a change of its template. */
  restartAt: boolean;
  /** Mistakes in the annotations, for users: each message says what to do. */
  mistakes: readonly string[];
}

/** The part of the configuration that decides how annotations are read. */
interface AnnotationRules {
  keys: ReloaderKeys;
  /** A workload without annotations counts as `auto`, except a Job. */
  reloadAll: boolean;
  ignored: readonly ReloaderKind[];
}

export const STANDARD_RULES: AnnotationRules = { keys: RELOADER_KEYS, reloadAll: false, ignored: [] };

/** How the names of the keys for one kind of source begin. */
const PREFIXES = { Secret: "secret", ConfigMap: "configMap", SecretProviderClass: "secretProviderClass" } as const;

/** The keys for one kind of source. */
function keysOf(keys: ReloaderKeys, kind: ChosenKind) {
  const prefix = PREFIXES[kind];
  const [auto, listed, excluded] = [`${prefix}Auto`, `${prefix}Reload`, `${prefix}Exclude`] as const;
  return { auto: keys[auto], listed: keys[listed], excluded: keys[excluded] };
}

/** The texts that Go parses as booleans. */
const TRUE = ["1", "t", "T", "TRUE", "true", "True"];
const FALSE = ["0", "f", "F", "FALSE", "false", "False"];

/** The syntax of durations in bindings. */
const INTERVAL = /^([0-9]+(ms|s|m|h))+$/;
const MAX_INTERVAL_LENGTH = 32;

/** Undefined for a workload that restarts for nothing and has no mistakes. */
export function choiceOf(
  { kind, namespace }: { kind: string; namespace: string },
  annotations: ReloaderAnnotations | undefined,
  given: AnnotationRules = STANDARD_RULES,
): ReloadRules | undefined {
  const { own, pods } = annotations ?? { own: {}, pods: {} };
  const { keys } = given;
  const mistakes: string[] = [];
  const rule = (each: ChosenKind) => {
    const autoReloadAll = given.reloadAll && kind !== "Job";
    return ruleOf(each, own, pods, { ...given, autoReloadAll }, (text, key) => listOf(text, key, namespace, mistakes));
  };
  const rules = {
    Secret: rule("Secret"),
    ConfigMap: rule("ConfigMap"),
    SecretProviderClass: rule("SecretProviderClass"),
  };
  const minInterval = intervalOf(kind, own, pods, keys.pausePeriod, mistakes);
  // Reloader reads these two from the workload itself only.
  const { [keys.pausePeriod]: _, [keys.rolloutStrategy]: strategy, ...counted } = pods;
  checkAll({ ...counted, ...own }, keys, mistakes);
  if (strategy !== undefined)
    mistakes.push(
      kind === "Rollout"
        ? misplaced(kind, own, keys.rolloutStrategy)
        : `${keys.rolloutStrategy} has no effect on the pod template, nor on a ${kind}; remove it`,
    );
  const isNothing = CHOSEN_KINDS.every((each) => isIdle(rules[each]));
  // All other kinds restart by their template alone.
  const restartAt = kind === "Rollout" && own[keys.rolloutStrategy] === "restart";
  return isNothing && mistakes.length === 0
    ? undefined
    : { rules, minInterval, restartAt, mistakes: [...new Set(mistakes)] };
}

function ruleOf(
  kind: ChosenKind,
  own: Texts,
  pods: Texts,
  { keys, ignored, autoReloadAll }: AnnotationRules & { autoReloadAll: boolean },
  namesIn: (text: string | undefined, key: string) => string[],
): Rule {
  const { auto, listed, excluded } = keysOf(keys, kind);
  const isIgnored = ignored.includes(kind);
  const texts = [listed, keys.search, keys.auto, auto].some((key) => own[key] !== undefined) ? own : pods;
  const autos = [texts[keys.auto] ?? "", texts[auto] ?? ""];
  const isAuto = autos.some((text) => TRUE.includes(text)) || (autoReloadAll && autos.every((text) => text === ""));
  const list = isIgnored ? [] : namesIn(texts[listed], listed);
  return {
    auto: !isIgnored && isAuto,
    search: !isIgnored && texts[keys.search] === "true",
    listed: list,
    excluded: new Set([own[excluded], texts[excluded]].flatMap((text) => namesIn(text, excluded))),
    isOwn: list.length > 0 || TRUE.includes(texts[auto] ?? ""),
    isIgnored,
    listedBy: listed,
  };
}

const isIdle = ({ auto, search, listed }: Rule) => !auto && !search && listed.length === 0;

/** How many entries of other namespaces in one annotation are reported one by one. */
const MAX_ELSEWHERE = 8;
/** A namespace and a name, as Wave writes them: `shop/login`. */
const QUALIFIED = /^([-a-z0-9]+)\/([-a-z0-9.]+)$/;

/** An entry may name the workload's own namespace. */
function listOf(text = "", key: string, namespace: string, mistakes: string[]): string[] {
  if (text.length > MAX_TEXT_LENGTH) {
    mistakes.push(`${key} has more than ${MAX_TEXT_LENGTH} characters, and has no effect; list fewer names`);
    return [];
  }
  const entries = text.split(",").map((each) => each.trim());
  let elsewhere = 0;
  const names = entries.flatMap((entry) => {
    const [, place = namespace, name = entry] = QUALIFIED.exec(entry) ?? [];
    if (place === namespace) return name === "" ? [] : [name];
    if (++elsewhere <= MAX_ELSEWHERE)
      mistakes.push(
        `${key}: ${shown(entry)} is not in the namespace ${namespace}; create a SecretBinding that names the source and the workload`,
      );
    return [];
  });
  if (elsewhere > MAX_ELSEWHERE)
    mistakes.push(`${key}: ${elsewhere - MAX_ELSEWHERE} more entries are not in the namespace ${namespace}`);
  return names;
}

/** The mistake of an annotation on the pod template that counts on the workload. */
function misplaced(kind: string, own: Texts, key: string): string {
  const instead = own[key] === undefined ? `, and set it in metadata.annotations of the ${kind}` : "";
  return `${key} has no effect on the pod template; remove it there${instead}`;
}

function intervalOf(kind: string, own: Texts, pods: Texts, key: string, mistakes: string[]): string | undefined {
  const [text, isOnPods] = [own[key], pods[key] !== undefined];
  if (text === undefined && !isOnPods) return undefined;
  if (kind !== "Deployment") {
    const itself = isOnPods ? `this ${kind} and its pod template` : `this ${kind}`;
    const where = text === undefined ? `the pod template of this ${kind}` : itself;
    mistakes.push(
      `${key} is for Deployments; remove it from ${where}, or create a SecretBinding with minInterval for its Secrets`,
    );
    return undefined;
  }
  if (isOnPods) mistakes.push(misplaced(kind, own, key));
  if (text === undefined) return undefined;
  const ms = attemptSync(() => parseDuration(text, key));
  if (!(ms instanceof Problem)) return INTERVAL.test(text) && text.length <= MAX_INTERVAL_LENGTH ? text : `${ms}ms`;
  mistakes.push(ms.message);
  return undefined;
}

function checkAll(texts: Texts, keys: ReloaderKeys, mistakes: string[]): void {
  const known = new Set(Object.values(keys));
  const booleans = [keys.auto, ...CHOSEN_KINDS.map((kind) => keysOf(keys, kind).auto)];
  for (const [key, text] of Object.entries(texts).sort()) {
    if (!known.has(key))
      mistakes.push(`${key} is not a known annotation; see compositions/reloader/README.md for the known ones`);
    // For the search annotation, only these two words count.
    else if (key === keys.search ? !["true", "false"].includes(text) : booleans.includes(key) && !isTruth(text))
      mistakes.push(`${key}: ${shown(text)} is neither true nor false; write "true"`);
    else if (key === keys.rolloutStrategy && !["rollout", "restart"].includes(text))
      mistakes.push(`${key}: ${shown(text)} is not a strategy; write "rollout", or remove the annotation`);
  }
}

const isTruth = (text: string) => TRUE.includes(text) || FALSE.includes(text);

const MAX_SHOWN_LENGTH = 80;
/** A text from an annotation, quoted and shortened for a message. */
export const shown = (text: string): string =>
  quoted(text.length > MAX_SHOWN_LENGTH ? `${text.slice(0, MAX_SHOWN_LENGTH)}…` : text);
