/** Generates the bindings that restart a workload for its sources, exactly as the API server stores them. Pure. */
import { createHash } from "node:crypto";
import type { Source as BindingSource, SecretBinding } from "../../api/binding.ts";
import {
  claimsToBeGenerated,
  GENERATED_FOR,
  GENERATED_FOR_UID,
  isLabelled,
  RELOADER,
  RELOADER_ACCOUNT,
} from "../../api/reloader.ts";
import type { ReloaderRules } from "../../api/reloader-rules.ts";
import { sameJson } from "../../apimachinery/json.ts";
import { MAX_NAME_LENGTH } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { GeneratedBinding, Generator, Owner } from "../generated-bindings.ts";
import type { ReloadRules } from "./annotations.ts";
import type { ReloaderSource } from "./sources.ts";

/** How a workload restarts. */
type Way = Pick<ReloadRules, "minInterval" | "restartAt"> &
  Pick<ReloaderRules, "reloadOnCreate" | "reloadOnDelete" | "runCronJobs" | "debounce">;

/** A binding for a workload. */
export interface ReloaderBinding extends GeneratedBinding {
  /** A binding has restarted the workload, or recreated the Job. */
  isStamped: boolean;
}

/** The maximum of the schema. */
const MAX_SOURCES = 16;
const MAX_PARTS = 64;
/** The prefix of the names of all of them. */
export const PREFIX = "reloader-";
const MAX_SOURCE_NAME_LENGTH = 63;

const JOB = "Job";
/** A Job may run long. */
const TIMEOUTS: Readonly<Record<string, string>> = { [JOB]: "24h" };

/** No binding for a workload without sources, one for up to sixteen sources. */
export function bindingsOf(
  owner: Owner & { namespace: string },
  sources: readonly ReloaderSource[],
  way: Way,
  isStamped = false,
): ReloaderBinding[] {
  return shared(sources).flatMap((own, place) =>
    own.length === 0
      ? []
      : [{ namespace: owner.namespace, name: nameOf(owner, place), owner, isStamped, spec: specOf(owner, own, way) }],
  );
}

/** The wanted metadata of a binding, with what others have set there. */
export function metadataOf({ owner }: ReloaderBinding, there: Partial<SecretBinding["metadata"]> = {}) {
  const labels = { ...there.labels, [GENERATED_FOR]: RELOADER };
  if (owner.kind === JOB) return { labels, annotations: { [GENERATED_FOR_UID]: owner.uid, ...there.annotations } };
  const others = (there.ownerReferences ?? []).filter(({ uid }) => uid !== owner.uid);
  const { apiVersion, kind, name, uid } = owner;
  return { labels, ownerReferences: [{ apiVersion, kind, name, uid }, ...others] };
}

/**
 * Whether a binding is as wanted, or as the API server stores it. A binding with recorded targets is not: the former spec has to
 * release them.
 */
export function isAsGenerated(
  { metadata, spec, status }: SecretBinding,
  desired: ReloaderBinding,
  kept: ReloaderBinding["spec"][] = [],
): boolean {
  return (
    isLabelled(metadata.labels) &&
    isFor(metadata, desired) &&
    (status?.targets ?? []).length === 0 &&
    [desired.spec, ...kept].some((each) => sameJson(spec, each))
  );
}

/**
 * Whether the binding is replaced instead of updated: the account of the former spec has to release what that spec wrote, and
 * another workload needs its own baseline.
 */
const isReplaced = (binding: SecretBinding, desired: ReloaderBinding): boolean =>
  (binding.status?.targets ?? []).length > 0 || isFormer(binding, desired);

/** The bindings of a namespace that no workload asks for. Workloads of `unseen` kinds may exist although none is seen. */
export function obsoleteOf(
  there: readonly SecretBinding[],
  desired: ReadonlyMap<string, ReloaderBinding>,
  unseen: readonly string[],
): SecretBinding[] {
  // The binding of a Job has no owner.
  const isUnseen = ({ metadata, spec }: SecretBinding) =>
    [...(metadata.ownerReferences ?? []), ...(spec.rollout?.targets ?? [])].some(({ kind = "" }) =>
      unseen.includes(kind),
    );
  return there.filter((each) => claimsToBeGenerated(each) && !desired.has(each.metadata.name) && !isUnseen(each));
}

/** Whether a binding was generated for a former workload of the same name. */
export function isFormer({ metadata }: SecretBinding, desired: ReloaderBinding): boolean {
  const { ownerReferences = [], annotations = {} } = metadata;
  const { kind, name } = desired.owner;
  const isGenerated =
    kind === JOB
      ? annotations[GENERATED_FOR_UID] !== undefined
      : ownerReferences.some((each) => each.kind === kind && each.name === name);
  return isGenerated && !isFor(metadata, desired);
}

/**
 * Whether a binding is for exactly this workload. A recreated Job keeps the binding of the former Job, whichever binding
 * recreated it.
 */
function isFor({ annotations, ownerReferences }: SecretBinding["metadata"], { owner, isStamped }: ReloaderBinding) {
  if (owner.kind !== JOB) return ownerReferences?.some((each) => each.uid === owner.uid) === true;
  return annotations?.[GENERATED_FOR_UID] === owner.uid || isStamped;
}

function specOf(
  { kind, name }: Owner,
  sources: readonly ReloaderSource[],
  { minInterval, restartAt, reloadOnCreate, reloadOnDelete, runCronJobs, debounce }: Way,
): ReloaderBinding["spec"] {
  const restartOn = [
    ...(reloadOnCreate ? (["SourceCreated"] as const) : []),
    ...(reloadOnDelete ? (["SourceDeleted"] as const) : []),
  ];
  return {
    serviceAccountName: RELOADER_ACCOUNT,
    defaults: { onMissing: "Wait", onConflict: "Fail", mode: "Continuous" },
    sources: sources.map(sourceOf),
    targets: [],
    rollout: {
      kinds: ["Deployment", "StatefulSet", "DaemonSet"],
      targets: [{ kind, name, ...(restartAt && { restartPath: "spec.restartAt" }) }],
      onFirstSync: "None",
      ...(restartOn.length > 0 && { restartOn }),
      ...(runCronJobs && kind === "CronJob" && { runCronJobs }),
      stamp: { annotation: "inlay.dev/rollout", value: "Revision" },
      timeout: TIMEOUTS[kind] ?? "10m",
      ...(debounce !== undefined && { debounce }),
      ...(minInterval !== undefined && { minInterval }),
    },
  };
}

/** Every source is optional: a source that does not exist now may be created later, and must not hold the others back. */
function sourceOf({ kind, name }: ReloaderSource): BindingSource {
  const called = { name: calledBy(kind.toLowerCase(), name), optional: true };
  if (kind === "SecretProviderClass") return { ...called, providerClass: { name } };
  return kind === "Secret" ? { ...called, secret: { name } } : { ...called, configMap: { name } };
}

/**
 * The name of a source in a binding has no dots and is short. No object's name has a capital letter, so the names can't collide.
 */
function calledBy(prefix: string, name: string): string {
  const plain = `${prefix}-${name}`;
  if (!plain.includes(".") && plain.length <= MAX_SOURCE_NAME_LENGTH) return plain;
  const end = `-X${hashOf(plain).slice(0, 16)}`;
  return `${plain.replaceAll(".", "-").slice(0, MAX_SOURCE_NAME_LENGTH - end.length)}${end}`;
}

/** Neither a number nor `long` is a kind, so the names of two workloads can't collide. */
function nameOf({ kind, name }: Owner, place: number): string {
  const number = place === 0 ? "" : `${place + 1}-`;
  const plain = `${PREFIX}${number}${kind.toLowerCase()}-${name}`;
  if (plain.length <= MAX_NAME_LENGTH) return plain;
  return `${PREFIX}long-${hashOf(plain).slice(0, 32)}-${name.slice(0, 64)}`.replace(/[-.]+$/, "");
}

/**
 * Distributes sources over bindings by a hash of their names: a new or removed source moves no other source, whose baseline would
 * begin again. Only a doubling of the number of bindings moves sources. The last resort is for names chosen to collide.
 */
function shared(sources: readonly ReloaderSource[]): ReloaderSource[][] {
  for (let count = 1; count <= MAX_PARTS; count *= 2) {
    const parts = Array.from({ length: count }, (): ReloaderSource[] => []);
    for (const source of sources) parts[placeOf(source) % count]?.push(source);
    if (parts.every((part) => part.length <= MAX_SOURCES)) return parts;
  }
  const count = Math.ceil(sources.length / MAX_SOURCES);
  return Array.from({ length: count }, (_, at) => sources.slice(at * MAX_SOURCES, (at + 1) * MAX_SOURCES));
}

const placeOf = ({ kind, name }: ReloaderSource) => Number.parseInt(hashOf(`${kind}/${name}`).slice(0, 8), 16);
const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");

/** Whether another user created the binding, although it has the name of a generated one. */
export const isForeign = ({ metadata, spec }: SecretBinding): boolean =>
  !isLabelled(metadata.labels) && spec.serviceAccountName !== RELOADER_ACCOUNT;

/** Why Inlay does not process a binding that was generated before annotations were switched off. */
export function leftOver({ metadata: { namespace = "", name } }: SecretBinding): Problem {
  const what =
    "it was generated from Reloader's annotations, which this installation no longer follows in this namespace";
  const command = `kubectl delete secretbinding ${name} -n ${namespace}`;
  return new Problem("OutOfScope", { what, fix: "delete it", command });
}

/** How to recognize and write the bindings for Reloader's annotations. */
export const RELOADER_BINDINGS: Omit<Generator<ReloaderBinding>, "identity"> = {
  fieldManager: RELOADER_ACCOUNT,
  origin: "Reloader's annotations",
  consequence: "so the workload does not restart by it",
  isForeign: isForeign,
  matches: isAsGenerated,
  isReplaced,
  metadataOf,
};
