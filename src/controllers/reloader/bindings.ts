/** A workload and the sources that it restarts for come in; the bindings that do it go out, complete, as the API server keeps them. Pure. */
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
import { Problem } from "../../apimachinery/problem.ts";
import type { GeneratedBinding, Generator, Owner } from "../generated-bindings.ts";
import type { ReloadRules } from "./annotations.ts";
import type { ReloaderSource } from "./sources.ts";

/** How it restarts. */
type Way = Pick<ReloadRules, "minInterval" | "restartAt"> &
  Pick<ReloaderRules, "reloadOnCreate" | "reloadOnDelete" | "runCronJobs">;

/** A binding for a workload. */
export interface ReloaderBinding extends GeneratedBinding {
  /** A binding has restarted the workload; a Job was recreated. */
  isStamped: boolean;
}

/** As many as the schema lets. */
const MAX_SOURCES = 16;
const MAX_PARTS = 64;
/** Of the names of all of them. */
export const PREFIX = "reloader-";
const MAX_NAME_LENGTH = 253;
const MAX_SOURCE_NAME_LENGTH = 63;

const JOB = "Job";
/** A Job may run long. */
const TIMEOUTS: Readonly<Record<string, string>> = { [JOB]: "24h" };

/** None for a workload without sources, one for up to sixteen of them. */
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

/** The metadata of a binding as it has to be, beside what others say there. */
export function metadataOf({ owner }: ReloaderBinding, there: Partial<SecretBinding["metadata"]> = {}) {
  const labels = { ...there.labels, [GENERATED_FOR]: RELOADER };
  if (owner.kind === JOB) return { labels, annotations: { [GENERATED_FOR_UID]: owner.uid, ...there.annotations } };
  const others = (there.ownerReferences ?? []).filter(({ uid }) => uid !== owner.uid);
  const { apiVersion, kind, name, uid } = owner;
  return { labels, ownerReferences: [{ apiVersion, kind, name, uid }, ...others] };
}

/**
 * Whether a binding is as it has to be, or as the API server keeps it. What it wrote as another that it was is for that one to
 * give up.
 */
export function isAsGenerated(
  { metadata, spec, status }: SecretBinding,
  made: ReloaderBinding,
  kept: ReloaderBinding["spec"][] = [],
): boolean {
  return (
    isLabelled(metadata.labels) &&
    isFor(metadata, made) &&
    (status?.targets ?? []).length === 0 &&
    [made.spec, ...kept].some((each) => sameJson(spec, each))
  );
}

/**
 * Whether the binding is not changed but replaced: what it wrote with another spec is released by that spec's account, and
 * another workload has a baseline of its own.
 */
export const isReplaced = (binding: SecretBinding, made: ReloaderBinding): boolean =>
  (binding.status?.targets ?? []).length > 0 || isFormer(binding, made);

/** The bindings of a namespace that no workload asks for. Workloads of `unseen` kinds may exist although none is seen. */
export function obsoleteOf(
  there: readonly SecretBinding[],
  made: ReadonlyMap<string, ReloaderBinding>,
  unseen: readonly string[],
): SecretBinding[] {
  const isUnseen = ({ metadata }: SecretBinding) =>
    metadata.ownerReferences?.some(({ kind = "" }) => unseen.includes(kind)) === true;
  return there.filter((each) => claimsToBeGenerated(each) && !made.has(each.metadata.name) && !isUnseen(each));
}

/** Whether a binding was made for a workload that went, of which another one has the name now. */
export function isFormer({ metadata }: SecretBinding, made: ReloaderBinding): boolean {
  const { ownerReferences = [], annotations = {} } = metadata;
  const { kind, name } = made.owner;
  const isMade =
    kind === JOB
      ? annotations[GENERATED_FOR_UID] !== undefined
      : ownerReferences.some((each) => each.kind === kind && each.name === name);
  return isMade && !isFor(metadata, made);
}

/** Whether a binding is for that very workload. For a recreated Job, whichever binding did it, it is the one of the former Job. */
function isFor({ annotations, ownerReferences }: SecretBinding["metadata"], { owner, isStamped }: ReloaderBinding) {
  if (owner.kind !== JOB) return ownerReferences?.some((each) => each.uid === owner.uid) === true;
  return annotations?.[GENERATED_FOR_UID] === owner.uid || isStamped;
}

function specOf(
  { kind, name }: Owner,
  sources: readonly ReloaderSource[],
  { minInterval, restartAt, reloadOnCreate, reloadOnDelete, runCronJobs }: Way,
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
      ...(minInterval !== undefined && { minInterval }),
    },
  };
}

/** One that is not there keeps nothing back: it may be there some day, or again. */
function sourceOf({ kind, name }: ReloaderSource): BindingSource {
  const called = { name: calledBy(kind.toLowerCase(), name), optional: true };
  if (kind === "SecretProviderClass") return { ...called, providerClass: { name } };
  return kind === "Secret" ? { ...called, secret: { name } } : { ...called, configMap: { name } };
}

/** A source's name has no dots and is short. No object's name has a capital, so none comes to the name of another. */
function calledBy(prefix: string, name: string): string {
  const plain = `${prefix}-${name}`;
  if (!plain.includes(".") && plain.length <= MAX_SOURCE_NAME_LENGTH) return plain;
  const end = `-X${hashOf(plain).slice(0, 16)}`;
  return `${plain.replaceAll(".", "-").slice(0, MAX_SOURCE_NAME_LENGTH - end.length)}${end}`;
}

/** Neither a number nor `long` is a kind, so no two workloads come to one name. */
function nameOf({ kind, name }: Owner, place: number): string {
  const number = place === 0 ? "" : `${place + 1}-`;
  const plain = `${PREFIX}${number}${kind.toLowerCase()}-${name}`;
  if (plain.length <= MAX_NAME_LENGTH) return plain;
  return `${PREFIX}long-${hashOf(plain).slice(0, 32)}-${name.slice(0, 64)}`.replace(/[-.]+$/, "");
}

/**
 * Sources shared out among bindings by their names alone: a source that comes or goes moves no other one, whose baseline
 * would begin anew, but where there have to be twice as many. Somebody could find names that all come to one.
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

/** Whether it is someone else's, although it has a name that a binding of ours would have. */
export const isOthers = ({ metadata, spec }: SecretBinding): boolean =>
  !isLabelled(metadata.labels) && spec.serviceAccountName !== RELOADER_ACCOUNT;

/** Why nothing is done for one that was made before annotations were switched off. */
export function leftOver({ metadata: { namespace = "", name } }: SecretBinding): Problem {
  const what = "it was made of Reloader's annotations, which nothing is done for here any more";
  return new Problem("OutOfScope", `${what}; delete it with: kubectl delete secretbinding ${name} -n ${namespace}`);
}

/** How to recognize bindings of Reloader's annotations, and how to write them. */
export const RELOADER_BINDINGS: Omit<Generator<ReloaderBinding>, "identity"> = {
  fieldManager: RELOADER_ACCOUNT,
  origin: "Reloader's annotations",
  consequence: "so that nothing restarts by it",
  isOthers,
  matches: isAsGenerated,
  isReplaced,
  metadataOf,
};
