/**
 * A value of a source and a key of this installation come in; a digest goes out by which a change of the value is seen,
 * and nothing else of it: without the key nobody can try what the value might be. Pure.
 */
import { createHmac } from "node:crypto";
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

/** What digests are made with. */
export interface DigestKey {
  /** Stands beside the digests that were made with it. */
  readonly id: string;
  readonly bytes: SecretValue<Uint8Array>;
}

/** Whose value a digest is of. Equal values in two places have digests that tell nothing of each other. */
export interface DigestScope {
  /** The binding, as `bindingKey` calls it: it outlives the object's uid, so that what is restored has the same digests. */
  readonly binding: string;
  /**
   * What identifies the source, and not what a binding calls it: otherwise a user who may edit the binding, and read no Secret,
   * could point it at a Secret of their own and see by the digest whether they guessed the value.
   */
  readonly source: SourcePlace;
  /** As uses have it: a key of a Secret or ConfigMap, the path of a field of another object, or all, or all keys that pass a filter. */
  readonly key: string;
}

const DOMAIN = "inlay.dev/rollout/v1";
/** 128 bits, of which nobody finds two alike who has no key. */
const BYTES = 16;

/**
 * A missing value has none: no workload restarts into it. Of an object that is no Secret or ConfigMap,
 * ALL_KEYS means all but its metadata and status, which change without a cause. Of versions there is one for each. Throws Problem("ElementNotUnique") for a path
 * that several elements of a list fit, and Problem("InvalidBinding") for a filter that is none or that takes more than the effort, and for more versions than status has room for.
 */
export function digestOf(
  key: DigestKey,
  { binding, source: at, key: place }: DigestScope,
  source: LiveSource,
  effort = newFilterEffort(),
): string | undefined {
  const digest = (parts: readonly Part[]) => {
    const what = [DOMAIN, binding, ...at, place, ...parts];
    const hmac = createHmac("sha256", key.bytes.reveal()).update(Buffer.concat(what.flatMap(framed)));
    return hmac.digest().subarray(0, BYTES).toString("base64url");
  };
  const parts = partsOf(source, place, effort);
  if (parts === undefined || source.kind !== "data" || !source.isVersions) return parts && digest(parts);
  const versions = versionsIn(parts).map((each) => digest(["version", ...each]));
  // Without some of them, a version that is new could not be told from one that was there.
  if (versions.length > MAX_VERSIONS) throw tooMany(source.description, versions.length);
  return versions.sort().join(SEPARATOR);
}

/** Of a value of which pods have several versions, there is a digest of each. */
export const digestsIn = (digest: string): string[] => digest.split(SEPARATOR);

/** No digest has it. */
const SEPARATOR = ",";
/** Of all objects of a class together: status has to hold them. */
const MAX_VERSIONS = 256;

function tooMany(source: string, length: number): Problem {
  const why = `the pods that mount the ${source} have ${length} versions of its objects, more than the ${MAX_VERSIONS} that a binding compares`;
  const advice = "replace the pods that have old versions, or split the objects among several classes";
  return new Problem("InvalidBinding", `${why}; ${advice}`, "OnChange");
}

/** Each version with the key that it is of, where parts have keys. */
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

/** What is digested, as parts of which each is framed: no two values come to the same. */
function partsOf(source: LiveSource, place: string, effort: Effort): Part[] | undefined {
  if (source.kind === "absent") return undefined;
  if (source.kind === "object") {
    const object = source.object.reveal();
    const value = place === ALL_KEYS ? owned(object) : (FieldPath.parse(place).get(object) as JsonValue | undefined);
    // As where values are read: null is as good as nothing.
    return value === undefined || value === null ? undefined : ["json", stringifyJson(inOrder(value))];
  }
  const filter = filterIn(place);
  if (filter === undefined) {
    const bytes = source.data.get(place);
    return bytes && ["bytes", bytes.reveal()];
  }
  const passes = keyFilter(filter, "from", effort);
  const keys = [...source.data].filter(([key]) => passes(key)).sort(([a], [b]) => (a < b ? -1 : 1));
  // A field that no key is left for is missing. Pods, which have no filter, may well refer to a source without data.
  if (keys.length === 0 && place !== ALL_KEYS) return undefined;
  return ["data", ...keys.flatMap(([key, bytes]): Part[] => [key, bytes.reveal()])];
}

const owned = ({ metadata: _, status: __, ...rest }: JsonObject): JsonObject => rest;

/** The API server may write the fields of an object in any order. */
function inOrder(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, inOrder(value[key] as JsonValue)]),
  );
}
