/** A workload and the sources that it restarts for come in; the bindings that do it go out, complete, as the API server keeps them. Pure. */
import { createHash } from "node:crypto";
import type { Source as BindingSource, SecretBinding } from "../../api/binding.ts";
import { isLabelled, MADE_FOR, MADE_FOR_UID, RELOADER, RELOADER_ACCOUNT } from "../../api/reloader.ts";
import { sameJson } from "../../apimachinery/json.ts";
import type { Choice } from "./annotations.ts";
import type { Source } from "./sources.ts";

/** How it restarts. */
type Way = Pick<Choice, "minInterval" | "restartAt">;

/** The workload that a binding is made for. */
export interface Owner {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
}

/** A binding as it has to be. */
export interface Made {
  name: string;
  owner: Owner;
  /** A binding has restarted it: of a Job, made it anew. */
  isStamped: boolean;
  spec: SecretBinding["spec"];
}

/** As many as the schema lets. */
const MOST_SOURCES = 16;
const MOST_PARTS = 64;
/** Of the names of all of them. */
export const PREFIX = "reloader-";
const LONGEST_NAME = 253;
const LONGEST_SOURCE_NAME = 63;

const JOB = "Job";
/** A Job may run long. */
const TIMEOUTS: Readonly<Record<string, string>> = { [JOB]: "24h" };

/** None for a workload without sources, one for up to sixteen of them. */
export function bindingsOf(owner: Owner, sources: readonly Source[], way: Way, isStamped = false): Made[] {
  return shared(sources).flatMap((own, place) =>
    own.length === 0 ? [] : [{ name: nameOf(owner, place), owner, isStamped, spec: specOf(owner, own, way) }],
  );
}

/** The metadata of a binding as it has to be, beside what others say there. */
export function metadataOf({ owner }: Made, there: Partial<SecretBinding["metadata"]> = {}) {
  const labels = { ...there.labels, [MADE_FOR]: RELOADER };
  if (owner.kind === JOB) return { ...there, labels, annotations: { [MADE_FOR_UID]: owner.uid, ...there.annotations } };
  const others = (there.ownerReferences ?? []).filter(({ uid }) => uid !== owner.uid);
  return { ...there, labels, ownerReferences: [{ ...owner }, ...others] };
}

/**
 * Whether a binding is as it has to be, or as the API server keeps it. What it wrote as another that it was is for that one to
 * give up.
 */
export function isAsMade({ metadata, spec, status }: SecretBinding, made: Made, kept: Made["spec"][] = []): boolean {
  return (
    isLabelled(metadata.labels) &&
    isFor(metadata, made) &&
    (status?.targets ?? []).length === 0 &&
    [made.spec, ...kept].some((each) => sameJson(spec, each))
  );
}

/** Whether a binding was made for a workload that went, of which another one has the name now. */
export function isFormer({ metadata }: SecretBinding, made: Made): boolean {
  const { ownerReferences = [], annotations = {} } = metadata;
  const { kind, name } = made.owner;
  const isMade =
    kind === JOB
      ? annotations[MADE_FOR_UID] !== undefined
      : ownerReferences.some((each) => each.kind === kind && each.name === name);
  return isMade && !isFor(metadata, made);
}

/** Whether a binding is for that very workload. For a Job that was made anew, by whichever binding, it is the one of the former Job. */
function isFor({ annotations, ownerReferences }: SecretBinding["metadata"], { owner, isStamped }: Made): boolean {
  if (owner.kind !== JOB) return ownerReferences?.some((each) => each.uid === owner.uid) === true;
  return annotations?.[MADE_FOR_UID] === owner.uid || isStamped;
}

function specOf({ kind, name }: Owner, sources: readonly Source[], { minInterval, restartAt }: Way): Made["spec"] {
  return {
    serviceAccountName: RELOADER_ACCOUNT,
    defaults: { onMissing: "Wait", onConflict: "Fail", mode: "Continuous" },
    sources: sources.map(sourceOf),
    targets: [],
    rollout: {
      kinds: ["Deployment", "StatefulSet", "DaemonSet"],
      targets: [{ kind, name, ...(restartAt && { restartPath: "spec.restartAt" }) }],
      onFirstSync: "None",
      stamp: { annotation: "inlay.dev/rollout", value: "Revision" },
      timeout: TIMEOUTS[kind] ?? "10m",
      ...(minInterval !== undefined && { minInterval }),
    },
  };
}

/** One that is not there keeps nothing back: it may be there some day, or again. */
function sourceOf({ kind, name }: Source): BindingSource {
  const called = { name: calledBy(kind.toLowerCase(), name), optional: true };
  return kind === "Secret" ? { ...called, secret: { name } } : { ...called, configMap: { name } };
}

/** A source's name has no dots and is short. No object's name has a capital, so none comes to the name of another. */
function calledBy(prefix: string, name: string): string {
  const plain = `${prefix}-${name}`;
  if (!plain.includes(".") && plain.length <= LONGEST_SOURCE_NAME) return plain;
  const end = `-X${hashOf(plain).slice(0, 16)}`;
  return `${plain.replaceAll(".", "-").slice(0, LONGEST_SOURCE_NAME - end.length)}${end}`;
}

/** Neither a number nor `long` is a kind, so no two workloads come to one name. */
function nameOf({ kind, name }: Owner, place: number): string {
  const number = place === 0 ? "" : `${place + 1}-`;
  const plain = `${PREFIX}${number}${kind.toLowerCase()}-${name}`;
  if (plain.length <= LONGEST_NAME) return plain;
  return `${PREFIX}long-${hashOf(plain).slice(0, 32)}-${name.slice(0, 64)}`.replace(/[-.]+$/, "");
}

/**
 * Sources shared out among bindings by their names alone: a source that comes or goes moves no other one, whose baseline
 * would begin anew, but where there have to be twice as many. Somebody could find names that all come to one.
 */
function shared(sources: readonly Source[]): Source[][] {
  for (let count = 1; count <= MOST_PARTS; count *= 2) {
    const parts = Array.from({ length: count }, (): Source[] => []);
    for (const source of sources) parts[placeOf(source) % count]?.push(source);
    if (parts.every((part) => part.length <= MOST_SOURCES)) return parts;
  }
  const count = Math.ceil(sources.length / MOST_SOURCES);
  return Array.from({ length: count }, (_, at) => sources.slice(at * MOST_SOURCES, (at + 1) * MOST_SOURCES));
}

const placeOf = ({ kind, name }: Source) => Number.parseInt(hashOf(`${kind}/${name}`).slice(0, 8), 16);
const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");
