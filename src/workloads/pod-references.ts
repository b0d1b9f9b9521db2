/** Finds what a pod spec reads of Secrets, ConfigMaps and SecretProviderClasses, by name and key. No I/O. */
import { at, listAt, namesIn } from "../apimachinery/fields.ts";
import { insertionPoint } from "../apimachinery/insertion-point.ts";
import { MAX_NAME_LENGTH } from "../apimachinery/objects.ts";

export type PodSource = "Secret" | "ConfigMap" | "SecretProviderClass";

/** Where a pod names what it reads; shown to users. */
export type PodPlace = "env" | "envFrom" | "volume" | "subPath" | "projected" | "imagePullSecret" | "csi";

/** By the names in rollout.consumersBy. */
export const PLACES = {
  Env: "env",
  EnvFrom: "envFrom",
  Volume: "volume",
  SubPath: "subPath",
  Projected: "projected",
  ImagePullSecret: "imagePullSecret",
  CSI: "csi",
} as const satisfies Record<string, PodPlace>;

/** What pods read of one object in one way. */
export interface PodReference {
  readonly kind: PodSource;
  readonly name: string;
  /** Sorted. Undefined: all keys. */
  readonly keys?: readonly string[];
  readonly by: PodPlace;
  /** Pods start without it. */
  readonly optional?: true;
}

/**
 * Whether it is in addition to a reference by the volume itself. A file that a container mounts by `subPath` never changes while the
 * container runs, and other files of a volume do.
 */
export const isBeside = ({ by }: Pick<PodReference, "by">): boolean => by === "subPath";

/** All lists of containers. The template of a custom kind may have ephemeral ones too. */
const CONTAINERS = ["initContainers", "containers", "ephemeralContainers"];
/** Volumes of other systems, which name their Secret in the field secretRef. */
const WITH_SECRET_REF = ["cephfs", "cinder", "rbd", "iscsi", "flexVolume", "scaleIO", "storageos"];

/**
 * One reference for each object and way, sorted by kind, name and way. A malformed part of the spec has no references. Not more than the
 * first `most` references, and those beside them. If they have more than `most` keys in all, those with the last keys are for all keys of their object.
 */
export function podReferences(podSpec: unknown, most = Number.POSITIVE_INFINITY): PodReference[] {
  const found = new Found(most);
  for (const container of CONTAINERS.flatMap((field) => listAt(podSpec, field))) {
    for (const variable of listAt(container, "env")) {
      if (found.isFull) return found.references();
      const from = at(variable, "valueFrom");
      found.addKey("Secret", at(from, "secretKeyRef"), "env");
      found.addKey("ConfigMap", at(from, "configMapKeyRef"), "env");
    }
    for (const source of listAt(container, "envFrom")) {
      if (found.isFull) return found.references();
      found.addWhole("Secret", at(source, "secretRef"), "envFrom");
      found.addWhole("ConfigMap", at(source, "configMapRef"), "envFrom");
    }
  }
  const mounted = mountedBySubPath(podSpec);
  for (const volume of listAt(podSpec, "volumes")) {
    if (found.isFull) break;
    const files = mounted.get(at(volume, "name"));
    found.addFiles("Secret", at(volume, "secret", "secretName"), at(volume, "secret"), "volume", files);
    found.addFiles("ConfigMap", at(volume, "configMap", "name"), at(volume, "configMap"), "volume", files);
    for (const source of listAt(volume, "projected", "sources")) {
      found.addFiles("Secret", at(source, "secret", "name"), at(source, "secret"), "projected", files);
      found.addFiles("ConfigMap", at(source, "configMap", "name"), at(source, "configMap"), "projected", files);
    }
    const providerClass = at(volume, "csi", "volumeAttributes", "secretProviderClass");
    found.add("SecretProviderClass", providerClass, "csi");
    if (files !== undefined) found.add("SecretProviderClass", providerClass, "subPath");
    found.add("Secret", at(volume, "csi", "nodePublishSecretRef", "name"), "csi");
    found.add("Secret", at(volume, "azureFile", "secretName"), "volume");
    for (const type of WITH_SECRET_REF) found.add("Secret", at(volume, type, "secretRef", "name"), "volume");
  }
  for (const secret of listAt(podSpec, "imagePullSecrets")) found.add("Secret", at(secret, "name"), "imagePullSecret");
  return found.references();
}

/** The files of a volume that containers mount by `subPath`: the first names of their paths. `all`: these are not known. */
type Files = Set<string> | "all";

/** By the names of the volumes. */
function mountedBySubPath(podSpec: unknown): Map<unknown, Files> {
  const mounted = new Map<unknown, Files>();
  const containers = CONTAINERS.flatMap((field) => listAt(podSpec, field));
  for (const mount of containers.flatMap((each) => listAt(each, "volumeMounts"))) {
    const [path, expression] = [at(mount, "subPath"), at(mount, "subPathExpr")].map((each) => each || undefined);
    if (path === undefined && expression === undefined) continue;
    const volume = at(mount, "name");
    const known = mounted.get(volume) ?? new Set();
    const name = expression === undefined ? firstName(path) : undefined;
    // Names that begin with two dots are of the kubelet.
    if (known === "all" || name === undefined || name.startsWith("..")) mounted.set(volume, "all");
    else mounted.set(volume, known.add(name));
  }
  return mounted;
}

const firstName = (path: unknown): string | undefined =>
  typeof path === "string" ? path.split("/").find((each) => each !== "" && each !== ".") : undefined;

/** The keys behind these files. Undefined: all of the volume. */
function keysOf(files: Files, items: readonly unknown[]): readonly string[] | undefined {
  if (files === "all") return items.length === 0 ? undefined : namesIn(items, "key");
  if (items.length === 0) return [...files];
  const shown = items.filter((item) => files.has(firstName(at(item, "path")) ?? ""));
  return shown.length === 0 ? [] : namesIn(shown, "key");
}

/** Those of the references, which are in the order of `podReferences`, that are to one object. */
export function referencesTo(
  references: readonly PodReference[],
  { kind, name }: Pick<PodReference, "kind" | "name">,
): PodReference[] {
  const to = `${kind}/${name}/`;
  const found: PodReference[] = [];
  for (let at = insertionPoint(references, (each) => idOf(each) < to); at < references.length; at++) {
    const each = references[at] as PodReference;
    // A name in a template of a custom kind may have slashes.
    if (!idOf(each).startsWith(to)) break;
    if (each.name === name) found.push(each);
  }
  return found;
}

const idOf = ({ kind, name, by }: Pick<PodReference, "kind" | "name" | "by">) => `${kind}/${name}/${by}`;

interface FoundReference {
  kind: PodSource;
  name: string;
  keys: Set<string> | "all";
  by: PodPlace;
  optional: boolean;
}

const isOptional = (selector: unknown): boolean => at(selector, "optional") === true;

class Found {
  readonly #most: number;
  readonly #found = new Map<string, FoundReference>();
  #keys = 0;
  #beside = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get isFull(): boolean {
    return this.#found.size - this.#beside >= this.#most;
  }

  /** Adds the whole object, unless keys are given. An object is optional if all its references are. */
  add(kind: PodSource, name: unknown, by: PodPlace, keys: readonly string[] | "all" = "all", optional = false): void {
    if (typeof name !== "string" || name === "" || name.length > MAX_NAME_LENGTH) return;
    const id = idOf({ kind, name, by });
    const known: FoundReference = this.#found.get(id) ?? { kind, name, keys: new Set<string>(), by, optional };
    if (!this.#found.has(id)) {
      if (isBeside(known)) this.#beside++;
      else if (this.isFull) return;
    }
    this.#found.set(id, known);
    known.optional &&= optional;
    if (keys === "all") known.keys = "all";
    else for (const key of keys) this.#addKey(known, key);
  }

  #addKey(known: FoundReference, key: string): void {
    if (known.keys === "all" || key.length > MAX_NAME_LENGTH || known.keys.has(key)) return;
    known.keys.add(key);
    if (++this.#keys > this.#most) known.keys = "all";
  }

  addKey(kind: PodSource, selector: unknown, by: PodPlace): void {
    const key = at(selector, "key");
    this.add(kind, at(selector, "name"), by, typeof key === "string" ? [key] : "all", isOptional(selector));
  }

  addWhole(kind: PodSource, selector: unknown, by: PodPlace): void {
    this.add(kind, at(selector, "name"), by, "all", isOptional(selector));
  }

  /** Pods see every key of a volume that lists no items. `files`: those that containers mount by `subPath`. */
  addFiles(kind: PodSource, name: unknown, volume: unknown, by: PodPlace, files: Files | undefined): void {
    const items = listAt(volume, "items");
    this.add(kind, name, by, namesIn(items, "key") ?? "all", isOptional(volume));
    if (files === undefined) return;
    const keys = keysOf(files, items);
    if (keys?.length !== 0) this.add(kind, name, "subPath", keys ?? "all", isOptional(volume));
  }

  references(): PodReference[] {
    return [...this.#found]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { kind, name, keys, by, optional }]) => ({
        kind,
        name,
        ...(keys !== "all" && { keys: [...keys].toSorted() }),
        by,
        ...(optional && { optional }),
      }));
  }
}
