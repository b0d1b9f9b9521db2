/** The annotations of an object come in; those by which Stakater Reloader is told what restarts go out. No I/O. */
import { isObject } from "../apimachinery/json.ts";
import { type LabelSelector, matchesLabels } from "../apimachinery/label-selector.ts";
import type { SecretBinding } from "./binding.ts";
import { RELOADER_KEYS, type ReloaderKeys, type ReloaderRules } from "./reloader-rules.ts";

/** The account that makes bindings of those annotations, and as which they act. It stands in Inlay's own namespace. */
export const RELOADER_ACCOUNT = "inlay-reloader";

/** The label of every binding that was made of annotations. */
export const GENERATED_FOR = "inlay.dev/generated-for";
export const RELOADER = "reloader";
/** The annotation of one that was made for a Job: its uid. It can have no owner, which would take it along when the Job is made anew. */
export const GENERATED_FOR_UID = "inlay.dev/generated-for-uid";

export const isLabelled = (labels: Readonly<Record<string, string>> | undefined): boolean =>
  labels?.[GENERATED_FOR] === RELOADER;

/** Whether a binding says that it was made of annotations. It need not be true. */
export const claimsToBeGenerated = ({ metadata, spec }: Pick<SecretBinding, "metadata" | "spec">): boolean =>
  isLabelled(metadata.labels) && spec.serviceAccountName === RELOADER_ACCOUNT;

const DOMAIN = "reloader.stakater.com";
/** What Reloader notes in a pod template, with each restart. */
export const LAST_RELOADED_FROM = `${DOMAIN}/last-reloaded-from`;

/** Annotations by their keys. */
export type Texts = Readonly<Record<string, string>>;

/** What a workload says to Reloader. */
export interface ReloaderAnnotations {
  readonly own: Texts;
  /** On its pod template. */
  readonly pods: Texts;
}

/** What a Secret or ConfigMap says: restart for me where somebody searches, or never restart for me. */
export type ReloaderMark = "match" | "ignore";

type Labels = Readonly<Record<string, string>>;

/** What is looked for in objects, by the keys and labels of the configuration. */
export class ReloaderView {
  readonly keys: ReloaderKeys;
  readonly #kept: ReadonlySet<string>;
  readonly #skipped: ReadonlySet<string>;
  readonly #sourceSelector: LabelSelector | undefined;

  constructor({ annotations, sourceSelector, recordOnWorkloads = false }: Partial<ReloaderRules> = {}) {
    this.keys = { ...RELOADER_KEYS, ...annotations };
    this.#sourceSelector = sourceSelector;
    // Whether it is there matters only to those who write it.
    const { pausedAt, ...others } = this.keys;
    this.#kept = new Set(Object.values(recordOnWorkloads ? this.keys : others));
    this.#skipped = new Set([pausedAt, LAST_RELOADED_FROM, ...Object.values(RELOADER_KEYS)]);
  }

  /** Undefined for a workload that says nothing, as most do. What has a key of Reloader's that means nothing is kept, to be reported. */
  annotationsOf(own: unknown, pods: unknown): ReloaderAnnotations | undefined {
    const found = { own: this.#textsOf(own), pods: this.#textsOf(pods) };
    return Object.keys(found.own).length + Object.keys(found.pods).length === 0 ? undefined : found;
  }

  markOf(annotations: Texts | undefined): ReloaderMark | undefined {
    if (annotations?.[this.keys.ignore] === "true") return "ignore";
    return annotations?.[this.keys.match] === "true" ? "match" : undefined;
  }

  /** The same of a Secret or ConfigMap, which the configuration may leave out by its labels. */
  markOfSource(annotations: Texts | undefined, labels: Labels = {}): ReloaderMark | undefined {
    const isSelected = this.#sourceSelector === undefined || matchesLabels(this.#sourceSelector, labels);
    return isSelected ? this.markOf(annotations) : "ignore";
  }

  #textsOf(annotations: unknown): Texts {
    if (!isObject(annotations)) return {};
    return Object.fromEntries(
      Object.entries(annotations).filter((each): each is [string, string] => this.#keeps(each[0]) && isText(each[1])),
    );
  }

  #keeps(key: string): boolean {
    if (this.#kept.has(key)) return true;
    if (this.#skipped.has(key)) return false;
    const prefix = key.slice(0, key.indexOf("/"));
    return prefix === DOMAIN || prefix.endsWith(`.${DOMAIN}`);
  }
}

/** As it is without a configuration. */
export const STANDARD_VIEW = new ReloaderView();

const isText = (value: unknown): value is string => typeof value === "string";
