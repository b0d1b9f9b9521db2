/**
 * Computes the keyed digest of a source's value. It shows that a value changed, and nothing else: without the key, guesses of the
 * value can't be checked. The status has a word in place of a digest if there is no value. Pure.
 */
import { createHmac } from "node:crypto";
import type { RolloutSpec } from "../../api/rollout.ts";
import { FieldPath } from "../../apimachinery/field-path.ts";
import type { Effort } from "../../apimachinery/glob.ts";
import { stringifyJson } from "../../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { SecretValue } from "../../apimachinery/secret-value.ts";
import type { SourcePlace } from "../../sources/source.ts";
import { ALL_KEYS, filterIn } from "../../sources/uses.ts";
import { keyFilter, newFilterEffort } from "../../transform/key-filter.ts";
import type { LiveSource } from "../../transform/live-source.ts";

/** The key of digests. */
export interface DigestKey {
  /** Recorded beside the digests. */
  readonly id: string;
  readonly bytes: SecretValue<Uint8Array>;
}

/** Where a value is used. Equal values in two places have unrelated digests. */
export interface DigestScope {
  /** The binding's `bindingKey` instead of its uid: a restored binding has the same digests. */
  readonly binding: string;
  /**
   * The identity of the source, and not the binding's name for it. Otherwise a user who may edit the binding and read no Secret
   * could point the name at an own Secret, and see by the digest whether a guess of the value is right.
   */
  readonly source: SourcePlace;
  /** A key of a Secret or ConfigMap, the path of a field of another object, ALL_KEYS, or a filter of keys. */
  readonly key: string;
}

/** What the digests of one binding may cost together. */
interface DigestEffort {
  /** Of filters. */
  readonly filters: Effort;
  /** In bytes of values. */
  readonly bytes: Effort;
}

/** In bytes: all sources of a binding, if they have 1 MB each, twice. */
const MAX_BYTES = 32 * 1024 ** 2;

export const newDigestEffort = (): DigestEffort => ({ filters: newFilterEffort(), bytes: { left: MAX_BYTES } });

const DOMAIN = "inlay.dev/rollout/v1";
/** 128 bits: without the key, no collision can be found. */
const BYTES = 16;

/**
 * Undefined for a missing value, for which no workload restarts. For an object that is not a Secret or ConfigMap, ALL_KEYS
 * excludes metadata and status, which change for other reasons. For versions, one digest for each. Throws
 * Problem("ElementNotUnique") for a path that matches several elements of a list, and Problem("InvalidBinding") for an invalid
 * filter, what is beyond the effort, or more versions than the status has room for. Yields where it may be interrupted.
 */
export function* digestOf(
  key: DigestKey,
  { binding, source: at, key: place }: DigestScope,
  source: LiveSource,
  effort = newDigestEffort(),
): Generator<void, string | undefined> {
  const digest = (parts: readonly Part[]) => {
    const what = [DOMAIN, binding, ...at, place, ...parts];
    const hmac = createHmac("sha256", key.bytes.reveal()).update(Buffer.concat(what.flatMap(framed)));
    return hmac.digest().subarray(0, BYTES).toString("base64url");
  };
  const parts = yield* partsOf(source, place, effort.filters);
  effort.bytes.left -= parts?.reduce((sum, { length }) => sum + length, 0) ?? 0;
  if (effort.bytes.left < 0) throw tooLarge();
  if (parts === undefined || source.kind !== "data" || !source.isVersions) return parts && digest(parts);
  const versions = versionsIn(parts);
  // If some versions were missing, a new version could not be distinguished from a former one.
  if (versions.length > MAX_VERSIONS) throw tooMany(source.description, versions.length);
  const digests = versions.map((each) => digest(["version", ...each]));
  return digests.sort().join(SEPARATOR);
}

/** If pods have several versions of a value, there is one digest for each version. */
export const digestsIn = (digest: string): string[] => digest.split(SEPARATOR);

/** No digest contains it. */
const SEPARATOR = ",";
/** For all objects of a class together: the status stores them. */
const MAX_VERSIONS = 256;

function tooMany(source: string, length: number): Problem {
  const why = `the pods that mount the ${source} have ${length} versions of its objects, more than the ${MAX_VERSIONS} that a binding compares`;
  const advice = "replace the pods that have old versions, or split the objects among several classes";
  return new Problem("InvalidBinding", `${why}; ${advice}`, "OnChange");
}

function tooLarge(): Problem {
  const most = `${MAX_BYTES / 1024 ** 2} MiB`;
  const what = `the values that workloads restart for are larger than ${most} together, counting what several filters or field paths include for each of them`;
  const fix = "use fewer or smaller parts of the sources, or split the binding";
  return new Problem("InvalidBinding", { at: ["spec.rollout"], what, fix }, "OnChange");
}

/** Each version, with its key if the parts have keys. */
function versionsIn([kind, ...parts]: readonly Part[]): Part[][] {
  const lines = (bytes: Part = "") => Buffer.from(bytes).toString().split("\n");
  if (kind === "bytes") return lines(parts[0]).map((line) => [line]);
  return parts.flatMap((key, at) => (at % 2 === 0 ? lines(parts[at + 1]).map((line): Part[] => [key, line]) : []));
}

function framed(part: Part): Uint8Array[] {
  const bytes = Buffer.from(part);
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE(BigInt(bytes.length));
  return [length, bytes];
}

type Part = string | Uint8Array;

/** The parts to digest. Each part is framed by its length, so different values never give the same input. */
function* partsOf(source: LiveSource, place: string, effort: Effort): Generator<void, Part[] | undefined> {
  if (source.kind === "absent") return undefined;
  if (source.kind === "object") {
    const object = source.object.reveal();
    const value = place === ALL_KEYS ? owned(object) : (FieldPath.parse(place).get(object) as JsonValue | undefined);
    // As where values are read: null counts as missing.
    if (value === undefined || value === null) return undefined;
    const ordered = yield* inOrder(value);
    yield;
    return ["json", stringifyJson(ordered)];
  }
  const filter = filterIn(place);
  if (filter === undefined) {
    const bytes = source.data.get(place);
    return bytes && ["bytes", bytes.reveal()];
  }
  const passes = keyFilter(filter, "from", effort);
  const keys = [...source.data].filter(([key]) => passes(key)).sort(([a], [b]) => (a < b ? -1 : 1));
  // If no key passes the filter, the field is missing. Pods have no filter and may refer to a source without data.
  if (keys.length === 0 && place !== ALL_KEYS) return undefined;
  return ["data", ...keys.flatMap(([key, bytes]): Part[] => [key, bytes.reveal()])];
}

const owned = ({ metadata: _, status: __, ...rest }: JsonObject): JsonObject => rest;

/** The API server may return the fields of an object in any order. */
function* inOrder(value: JsonValue): Generator<void, JsonValue> {
  if (typeof value !== "object" || value === null) return value;
  yield;
  const keys = Array.isArray(value) ? [...value.keys()] : Object.keys(value).sort();
  const entries: [number | string, JsonValue][] = [];
  for (const key of keys) {
    const each = (value as Record<number | string, JsonValue>)[key] as JsonValue;
    entries.push([key, typeof each === "object" ? yield* inOrder(each) : each]);
  }
  return Array.isArray(value) ? entries.map(([, each]) => each) : Object.fromEntries(entries);
}

/** The source does not exist. Used only if restartOn makes that count. */
export const ABSENT = "absent";
/** No pod mounts the SecretProviderClass, so no pod has an old version of anything. */
const UNMOUNTED = "unmounted";

export const isPresent = (digest: string | undefined): digest is string =>
  digest !== undefined && digest !== ABSENT && digest !== UNMOUNTED;

/** Undefined if it is not known whether the source exists, as when a grant was withdrawn. */
export function presenceOf(
  { problem, isUnmounted }: Extract<LiveSource, { kind: "absent" }>,
  { restartOn = [] }: Pick<RolloutSpec, "restartOn">,
): string | undefined {
  if (isUnmounted) return UNMOUNTED;
  return restartOn.length > 0 && problem.reason === "SourceNotFound" ? ABSENT : undefined;
}
