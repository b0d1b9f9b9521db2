/** Reads the annotations with which users configure Stakater Reloader. No I/O. */
import { isObject } from "../apimachinery/json.ts";
import { type LabelSelector, matchesLabels } from "../apimachinery/label-selector.ts";
import type { SecretBinding, Source } from "./binding.ts";
import { RELOADER_KEYS, type ReloaderKeys, type ReloaderRules } from "./reloader-rules.ts";

/**
 * The account, in Inlay's own namespace, that creates the bindings for those annotations; their service account too.
 */
export const RELOADER_ACCOUNT = "inlay-reloader";

/** The label of every binding that Inlay generated from annotations. */
export const GENERATED_FOR = "inlay.dev/generated-for";
export const RELOADER = "reloader";
/**
 * The annotation with the uid of a Job that a binding was generated for. The Job does not own the binding, because the
 * binding must survive when Inlay deletes the Job and creates it again.
 */
export const GENERATED_FOR_UID = "inlay.dev/generated-for-uid";

export const isLabelled = (labels: Readonly<Record<string, string>> | undefined): boolean =>
  labels?.[GENERATED_FOR] === RELOADER;

/** Whether a binding looks generated from annotations. Any user can write such a binding. */
export const claimsToBeGenerated = ({ metadata, spec }: Pick<SecretBinding, "metadata" | "spec">): boolean =>
  isLabelled(metadata.labels) && spec.serviceAccountName === RELOADER_ACCOUNT;

/** The object that a source of such a binding names. */
export function namedObject({ secret, configMap, providerClass }: Source) {
  if (secret?.name !== undefined) return { kind: "Secret", name: secret.name } as const;
  if (providerClass !== undefined) return { kind: "SecretProviderClass", name: providerClass.name } as const;
  return configMap?.name === undefined ? undefined : ({ kind: "ConfigMap", name: configMap.name } as const);
}

const DOMAIN = "reloader.stakater.com";
/** The annotation that Reloader writes to a pod template at each restart. */
export const LAST_RELOADED_FROM = `${DOMAIN}/last-reloaded-from`;

/** The longest text of an annotation that counts: more than 64 names of full length. */
export const MAX_TEXT_LENGTH = 32 * 1024;
/** How many unknown annotations of Reloader's domain are kept, to be reported. */
const MAX_UNKNOWN = 16;

/** The values of annotations by their keys. */
export type Texts = Readonly<Record<string, string>>;

/** Reloader's annotations of a workload. */
export interface ReloaderAnnotations {
  readonly own: Texts;
  /** On its pod template. */
  readonly pods: Texts;
}

/**
 * The mark of a Secret or ConfigMap: `match` restarts workloads with the search annotation; `ignore` prevents all
 * restarts.
 */
export type ReloaderMark = "match" | "ignore";

type Labels = Readonly<Record<string, string>>;

/** Finds the annotations in objects, by the keys and labels of the configuration. */
export class ReloaderView {
  readonly keys: ReloaderKeys;
  readonly #kept: ReadonlySet<string>;
  readonly #skipped: ReadonlySet<string>;
  readonly #sourceSelector: LabelSelector | undefined;

  constructor({ annotations, sourceSelector, recordOnWorkloads = false }: Partial<ReloaderRules> = {}) {
    this.keys = { ...RELOADER_KEYS, ...annotations };
    this.#sourceSelector = sourceSelector;
    // Only the code that writes pausedAt reads it.
    const { pausedAt, ...others } = this.keys;
    this.#kept = new Set(Object.values(recordOnWorkloads ? this.keys : others));
    this.#skipped = new Set([pausedAt, LAST_RELOADED_FROM, ...Object.values(RELOADER_KEYS)]);
  }

  /** Undefined for a workload without annotations of Reloader. Unknown keys of Reloader are kept, to be reported. */
  annotationsOf(own: unknown, pods: unknown): ReloaderAnnotations | undefined {
    const found = { own: this.#textsOf(own), pods: this.#textsOf(pods) };
    return Object.keys(found.own).length + Object.keys(found.pods).length === 0 ? undefined : found;
  }

  markOf(annotations: Texts | undefined): ReloaderMark | undefined {
    if (annotations?.[this.keys.ignore] === "true") return "ignore";
    return annotations?.[this.keys.match] === "true" ? "match" : undefined;
  }

  /** The mark of a Secret or ConfigMap, which the configuration may exclude by its labels. */
  markOfSource(annotations: Texts | undefined, labels: Labels = {}): ReloaderMark | undefined {
    const isSelected = this.#sourceSelector === undefined || matchesLabels(this.#sourceSelector, labels);
    return isSelected ? this.markOf(annotations) : "ignore";
  }

  /** Not all of them if there are far more than Reloader has, and of a text that is too long only its beginning. */
  #textsOf(annotations: unknown): Texts {
    if (!isObject(annotations)) return {};
    const kept = Object.entries(annotations).filter(
      (each): each is [string, string] => this.#keeps(each[0]) && isText(each[1]),
    );
    // The known keys come first.
    const [known, others] = [kept.filter(([key]) => this.#kept.has(key)), kept.filter(([key]) => !this.#kept.has(key))];
    const texts = [...known, ...others.slice(0, MAX_UNKNOWN)];
    return Object.fromEntries(texts.map(([key, text]) => [key, text.slice(0, MAX_TEXT_LENGTH + 1)]));
  }

  #keeps(key: string): boolean {
    if (this.#kept.has(key)) return true;
    if (this.#skipped.has(key)) return false;
    const prefix = key.slice(0, key.indexOf("/"));
    return prefix === DOMAIN || prefix.endsWith(`.${DOMAIN}`);
  }
}

/** The view without a configuration. */
export const STANDARD_VIEW = new ReloaderView();

const isText = (value: unknown): value is string => typeof value === "string";
