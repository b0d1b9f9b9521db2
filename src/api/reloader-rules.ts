/**
 * The configuration of Stakater Reloader's annotations: the namespaces, kinds and keys for which they count. No I/O.
 */
import type { LabelSelector } from "../apimachinery/label-selector.ts";

/** The kinds of sources and workloads that annotations can refer to. */
export const RELOADER_KINDS = {
  sources: ["Secret", "ConfigMap", "SecretProviderClass"],
  workloads: ["Deployment", "StatefulSet", "DaemonSet", "CronJob", "Rollout", "Job"],
} as const;
export type ReloaderKind = (typeof RELOADER_KINDS)["sources" | "workloads"][number];

/** The key of each annotation: Reloader's own, unless the configuration sets another one. */
export const RELOADER_KEYS = {
  auto: "reloader.stakater.com/auto",
  search: "reloader.stakater.com/search",
  match: "reloader.stakater.com/match",
  ignore: "reloader.stakater.com/ignore",
  secretAuto: "secret.reloader.stakater.com/auto",
  secretReload: "secret.reloader.stakater.com/reload",
  secretExclude: "secrets.exclude.reloader.stakater.com/reload",
  configMapAuto: "configmap.reloader.stakater.com/auto",
  configMapReload: "configmap.reloader.stakater.com/reload",
  configMapExclude: "configmaps.exclude.reloader.stakater.com/reload",
  secretProviderClassAuto: "secretproviderclass.reloader.stakater.com/auto",
  secretProviderClassReload: "secretproviderclass.reloader.stakater.com/reload",
  secretProviderClassExclude: "secretproviderclasses.exclude.reloader.stakater.com/reload",
  rolloutStrategy: "reloader.stakater.com/rollout-strategy",
  pausePeriod: "deployment.reloader.stakater.com/pause-period",
  pausedAt: "deployment.reloader.stakater.com/paused-at",
} as const;
export type ReloaderKeys = Readonly<Record<keyof typeof RELOADER_KEYS, string>>;

/** Where and how the annotations of Stakater Reloader restart workloads. */
export interface ReloaderRules {
  /** Globs. */
  readonly namespaces: readonly string[];
  /** Globs of excluded namespaces. */
  readonly exceptNamespaces?: readonly string[];
  /** The labels that a namespace must have. */
  readonly namespaceSelector?: LabelSelector;
  /** The labels that a Secret or ConfigMap must have to restart anything. */
  readonly sourceSelector?: LabelSelector;
  /** Workloads of these kinds never restart. Sources of these kinds restart nothing. */
  readonly ignoreKinds?: readonly ReloaderKind[];
  /** Keys that replace Reloader's. */
  readonly annotations?: Partial<ReloaderKeys>;
  /** Inlay records restarts on workloads in the annotations that Reloader writes, for people and scripts. */
  readonly recordOnWorkloads?: boolean;
  /** A workload without annotations restarts for everything that its pods refer to. */
  readonly autoReloadAll: boolean;
  /** Inlay deletes an annotated Job and creates it again. */
  readonly jobs: boolean;
  /** A workload restarts when a missing source is created. */
  readonly reloadOnCreate?: boolean;
  /** A workload restarts when a source is deleted, if its pods can start without it. */
  readonly reloadOnDelete?: boolean;
  /** How long all sources of a workload must stay the same before it restarts, such as `500ms`. Absent: it does not wait. */
  readonly debounce?: string;
  /** A CronJob that restarts runs a Job at once. */
  readonly runCronJobs?: boolean;
  /** A workload restarts when the driver reports new versions of a SecretProviderClass that writes no Secret. */
  readonly providerClasses?: boolean;
}
