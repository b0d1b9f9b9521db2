/** The annotations of an object come in; those by which Stakater Reloader is told what restarts go out. No I/O. */
import { isObject } from "../apimachinery/json.ts";
import type { SecretBinding } from "./binding.ts";

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
/** What Reloader notes on workloads for itself, with each restart. */
const NOTES = [`${DOMAIN}/last-reloaded-from`, `deployment.${DOMAIN}/paused-at`];

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

/** Undefined for a workload that says nothing, as most do. */
export function reloaderAnnotations(own: unknown, pods: unknown): ReloaderAnnotations | undefined {
  const found = { own: reloaderTexts(own), pods: reloaderTexts(pods) };
  return Object.keys(found.own).length + Object.keys(found.pods).length === 0 ? undefined : found;
}

export function markOf(annotations: Texts | undefined): ReloaderMark | undefined {
  if (annotations?.[`${DOMAIN}/ignore`] === "true") return "ignore";
  return annotations?.[`${DOMAIN}/match`] === "true" ? "match" : undefined;
}

function reloaderTexts(annotations: unknown): Texts {
  if (!isObject(annotations)) return {};
  return Object.fromEntries(
    Object.entries(annotations).filter((each): each is [string, string] => isReloaders(each[0]) && isText(each[1])),
  );
}

function isReloaders(key: string): boolean {
  if (NOTES.includes(key)) return false;
  const prefix = key.slice(0, key.indexOf("/"));
  return prefix === DOMAIN || prefix.endsWith(`.${DOMAIN}`);
}

const isText = (value: unknown): value is string => typeof value === "string";
