/** What the configuration says of Stakater Reloader's annotations: where they count, for what, and by which keys. No I/O. */
import type { LabelSelector } from "../apimachinery/label-selector.ts";

/** The kinds of sources and of workloads that annotations may be about. */
export const RELOADER_KINDS = {
  sources: ["Secret", "ConfigMap", "SecretProviderClass"],
  workloads: ["Deployment", "StatefulSet", "DaemonSet", "CronJob", "Rollout", "Job"],
} as const;
export type ReloaderKind = (typeof RELOADER_KINDS)["sources" | "workloads"][number];

/** The annotations by their meaning, each with its key: Reloader's, unless the configuration has another one. */
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

/** Where workloads are restarted by the annotations of Stakater Reloader, and how. */
export interface ReloaderRules {
  /** Globs. */
  readonly namespaces: readonly string[];
  /** Globs of those that are left out. */
  readonly exceptNamespaces?: readonly string[];
  /** The labels that a namespace has to have. */
  readonly namespaceSelector?: LabelSelector;
  /** The labels that a Secret or ConfigMap has to have, for anything to restart for it. */
  readonly sourceSelector?: LabelSelector;
  /** No workload of such a kind restarts, and nothing restarts for a source of such a kind. */
  readonly ignoreKinds?: readonly ReloaderKind[];
  /** Keys in place of Reloader's. */
  readonly annotations?: Partial<ReloaderKeys>;
  /** Workloads carry what Reloader writes on them for people and scripts. */
  readonly recordOnWorkloads?: boolean;
  /** A workload without annotations restarts for all that its pods refer to. */
  readonly autoReloadAll: boolean;
  /** An annotated Job is deleted and created again. */
  readonly jobs: boolean;
  /** A workload restarts when a source comes that was not there. */
  readonly reloadOnCreate?: boolean;
  /** A workload restarts when a source goes, if its pods can start without it. */
  readonly reloadOnDelete?: boolean;
  /** A CronJob that restarts runs a Job at once. */
  readonly runCronJobs?: boolean;
  /** A workload restarts by the versions that the driver reports of a SecretProviderClass, where that writes no Secret. */
  readonly providerClasses?: boolean;
}
