/**
 * Reads paths of KV secrets engines, of version 1 and 2, with the login of the reader. If the policies allow it, the metadata of a path
 * decides whether its data is read.
 */

import { createHmac, randomBytes } from "node:crypto";
import { fieldsAt } from "../apimachinery/fields.ts";
import { isObject, isTooDeep } from "../apimachinery/json.ts";
import { BoundedMap } from "../apimachinery/maps.ts";
import { type JsonObject, type JsonValue, plainPath, quoted } from "../apimachinery/objects.ts";
import { Problem, type Reason } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { failed, notVault, refused, VaultProblem } from "./failures.ts";
import type { VaultReply } from "./http.ts";
import type { Logins } from "./logins.ts";
import { encodePath, OWN_MOUNTS } from "./path.ts";
import type { ConnectionServices, ConnectionSettings, Operation } from "./settings.ts";
import type { KvDataPlace, KvPlace, VaultAnswer, VaultReader } from "./types.ts";

/** Random for each process, so that a version reveals nothing about the content. */
const KEY = randomBytes(32);

const { rawJSON } = JSON as unknown as { rawJSON(text: string): JsonValue };

/** The answer for a path without content. */
export const absentAnswer = (version: string): VaultAnswer => ({ version, content: undefined, size: 0 });
const ABSENT = absentAnswer("absent");

/** Facts about one version of a path, which are in the answers with data and with metadata alike. */
interface VersionFacts {
  readonly version: number;
  readonly createdTime: string;
  /** Empty for a version without a planned deletion. */
  readonly deletionTime: string;
  readonly isDestroyed: boolean;
  readonly custom: Readonly<Record<string, string>>;
  readonly isGone: boolean;
}

/** Version numbers start again after a path was removed with its metadata, so the time is included. */
function versionText({ version, custom, isGone, ...facts }: VersionFacts): string {
  const { createdTime, deletionTime, isDestroyed } = facts;
  const state = [isDestroyed ? "destroyed" : "kept", isGone ? "gone" : "there"];
  return [version, createdTime, deletionTime, digestOf(Object.entries(custom).sort()), ...state].join(" ");
}

/** The answer with these keys. Without a version, a keyed hash of the content is the version. */
export function answerOf(
  texts: ReadonlyMap<string, string>,
  custom: Readonly<Record<string, string>>,
  version = digestOf([[...texts], Object.entries(custom).sort()]),
): VaultAnswer {
  const bytes = [...texts].map(([key, text]) => [key, Buffer.from(text)] as const);
  const data = new Map(bytes.map(([key, each]) => [key, new SecretValue<Uint8Array>(each)]));
  const size = bytes.reduce((sum, [key, each]) => sum + key.length + each.length, 0);
  return { version, content: { data, custom: new SecretValue(custom) }, size };
}

/** Custom metadata, which is null in Vault's answer if there is none. */
function customOf(value: unknown): Record<string, string> {
  if (!isObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((each): each is [string, string] => typeof each[1] === "string"),
  );
}

/**
 * The values of an object within an answer: a string as it is, any other value as JSON with numbers as Vault spells them. `pick` returns
 * the object. Throws Problem for an answer that nests too deep.
 */
function textsOf(
  answer: SecretValue<string>,
  pick: (answer: JsonObject) => JsonValue | undefined,
  place: string,
): Map<string, string> {
  const text = answer.reveal();
  if (isTooDeep(text))
    throw new Problem("TooDeep", { at: [place], what: `a value has too many levels; nest fewer objects and lists` });
  const parsed: JsonValue = JSON.parse(text, spelled as (key: string, value: unknown) => unknown);
  const found = isObject(parsed) ? pick(parsed) : undefined;
  const entries = isObject(found) ? Object.entries(found) : [];
  return new Map(entries.map(([key, value]) => [key, wordOf(value)]));
}

const wordOf = (value: JsonValue | undefined): string => (typeof value === "string" ? value : JSON.stringify(value));

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

function digestOf(value: unknown): string {
  return createHmac("sha256", KEY).update(JSON.stringify(value)).digest("base64url");
}

function spelled(_: string, value: unknown, { source }: { source?: string }): unknown {
  return typeof value === "number" && source !== undefined ? rawJSON(source) : value;
}

/** The keys of a metadata source, besides custom_metadata. */
const METADATA = ["updated_time", "created_time", "current_version"];
/** How long denied metadata is not requested again, and how long the version of a secrets engine is cached. */
const REMEMBERED_MS = 10 * 60_000;
/** How many logins and mounts are remembered. */
const MAX_REMEMBERED = 10_000;

/** Reasons that concern the request itself, not a login. */
const OF_REQUESTS: ReadonlySet<Reason> = new Set<Reason>(["ForbiddenAddress", "ForbiddenPath"]);
/** Matches the type of a KV secrets engine, also of a plugin. */
const KV_ENGINE = /^generic$|(?:^|-)kv$/;

/** The segment that a secrets engine of version 2 inserts between its mount and the path. */
type Below = "data" | "metadata";
type Settings = Pick<ConnectionSettings, "address" | "timeoutMs">;
type Version = KvDataPlace["kv"];
/** The type of a secrets engine; undefined if Vault does not report it. */
type Engine = Version | "other" | undefined;

export class KvReader {
  readonly #settings: Settings;
  readonly #logins: Pick<Logins, "send" | "keyOf" | "describe">;
  readonly #now: () => number;
  readonly #cpu: ConnectionServices["cpu"];
  /** Until when the metadata of a secrets engine counts as denied, by login and mount. */
  readonly #denied = new BoundedMap<string, number>(MAX_REMEMBERED);
  readonly #engines = new BoundedMap<string, { engine: Engine; until: number }>(MAX_REMEMBERED);

  constructor(
    settings: Settings,
    logins: Pick<Logins, "send" | "keyOf" | "describe">,
    now: () => number,
    cpu: ConnectionServices["cpu"],
  ) {
    this.#settings = settings;
    this.#logins = logins;
    this.#now = now;
    this.#cpu = cpu;
  }

  /** Throws Problem. */
  async data(reader: VaultReader, place: KvDataPlace, last: VaultAnswer | undefined): Promise<VaultAnswer> {
    checkMount(place);
    const answer = place.kv === 1 ? await this.#first(reader, place) : await this.#second(reader, place, last);
    return answer.version === last?.version ? last : answer;
  }

  /** Throws Problem. */
  async metadata(reader: VaultReader, place: KvPlace): Promise<VaultAnswer> {
    checkMount(place);
    const reply = await this.#get(reader, place, "metadata", ["metadata"]);
    if (reply.status === 404) return this.#absent(reader, place, NO_METADATA);
    if (reply.status !== 200) throw await this.#refused(reader, place, reply, "metadata");
    const metadata = fieldsAt(reply.json(this.#asked(place)), "data");
    const known = METADATA.filter((name) => (metadata[name] ?? null) !== null);
    const fields = new Map(known.map((name) => [name, wordOf(metadata[name])]));
    if (!fields.has("current_version")) throw notVault(this.#asked(place));
    const custom = customOf(metadata["custom_metadata"]);
    return answerOf(fields.set("custom_metadata", JSON.stringify(custom)), custom);
  }

  async #first(reader: VaultReader, place: KvDataPlace): Promise<VaultAnswer> {
    // Checked before anything is read: other engines create a credential for each read.
    this.#checkEngine(place, await this.#engineOf(reader, place), 1, "set kv: 2");
    const reply = await this.#get(reader, place, "data", []);
    if (reply.status === 404) {
      if (reply.says(/versioned K\/V/)) throw wrongEngine(place, 2, "set kv: 2");
      return ABSENT;
    }
    if (reply.status !== 200) throw await this.#refused(reader, place, reply);
    const { data, lease_id: lease } = reply.json(this.#asked(place));
    if (!isObject(data)) throw notVault(this.#asked(place));
    if (textOf(lease) !== "") throw wrongEngine(place, "other", NO_KV);
    const texts = () => textsOf(reply.text, (answer) => answer["data"], describe(place));
    return this.#cpu.run(reader.namespace, () => answerOf(texts(), {}));
  }

  async #second(reader: VaultReader, place: KvDataPlace, last: VaultAnswer | undefined): Promise<VaultAnswer> {
    if (last !== undefined) {
      const version = await this.#versionOf(reader, place);
      if (version === last.version) return last;
      if (version === ABSENT.version) return ABSENT;
    }
    const query = place.version === undefined ? "" : `?version=${place.version}`;
    const reply = await this.#get(reader, place, "data", ["data"], query);
    if (reply.status !== 200 && reply.status !== 404) throw await this.#refused(reader, place, reply, "data");
    const metadata = fieldsAt(reply.json(this.#asked(place)), "data", "metadata");
    const version = Number(metadata["version"]);
    if (!(version > 0)) {
      // Answers of version 2 always contain a version.
      if (reply.status === 200) throw wrongEngine(place, 1, "set kv: 1");
      return this.#absent(reader, place, "set kv: 1");
    }
    const custom = customOf(metadata["custom_metadata"]);
    const isGone = reply.status === 404;
    const text = versionText({ ...timesOf(metadata), version, custom, isGone });
    if (isGone) return absentAnswer(text);
    return this.#cpu.run(reader.namespace, () => {
      const data = textsOf(reply.text, (whole) => fieldsAt(whole, "data")["data"], describe(place));
      return answerOf(data, custom, text);
    });
  }

  /**
   * The version of the metadata, equal to that of the data. Undefined if the policies deny the metadata. A version with a deletion time
   * counts as deleted, so its data is read until Vault reports the deletion: only Vault's clock counts.
   */
  async #versionOf(reader: VaultReader, place: KvDataPlace): Promise<string | undefined> {
    const key = this.#keyOf(reader, place);
    if (this.#now() < (this.#denied.get(key) ?? 0)) return undefined;
    const reply = await this.#get(reader, place, "metadata", ["metadata"]);
    if (reply.status === 403) {
      this.#denied.set(key, this.#now() + REMEMBERED_MS);
      return undefined;
    }
    if (reply.status === 404) return (await this.#absent(reader, place, "set kv: 1")).version;
    if (reply.status !== 200) throw await this.#refused(reader, place, reply, "metadata");
    const metadata = fieldsAt(reply.json(this.#asked(place)), "data");
    const version = place.version ?? Number(metadata["current_version"]);
    const versions = fieldsAt(metadata, "versions");
    // A path may have metadata before it has data, and may have lost its old versions.
    if (!Object.hasOwn(versions, String(version))) return ABSENT.version;
    const facts = fieldsAt(versions, String(version));
    const custom = customOf(metadata["custom_metadata"]);
    const times = timesOf(facts);
    return versionText({ ...times, version, custom, isGone: times.isDestroyed || times.deletionTime !== "" });
  }

  /** Nothing is at the path, unless the secrets engine is of another type, for which Vault answers the same. */
  async #absent(reader: VaultReader, place: KvPlace, advice: string): Promise<VaultAnswer> {
    this.#checkEngine(place, await this.#engineOf(reader, place), 2, advice);
    return ABSENT;
  }

  #checkEngine(place: KvPlace, engine: Engine, expected: Version, advice: string): void {
    if (engine === undefined || engine === expected) return;
    throw wrongEngine(place, engine, engine === "other" ? NO_KV : advice);
  }

  async #engineOf(reader: VaultReader, place: KvPlace): Promise<Engine> {
    const key = this.#keyOf(reader, place);
    const known = this.#engines.get(key);
    if (known !== undefined && this.#now() < known.until) return known.engine;
    const path = `sys/internal/ui/mounts/${encodePath(place.mount)}`;
    const reply = await this.#send(reader, place, "lookup", path);
    if (reply.status === 429 || reply.status >= 500) throw refused(reply, this.#asked(place));
    const data = reply.status === 200 ? fieldsAt(reply.json(this.#asked(place)), "data") : {};
    const type = textOf(data["type"]);
    const version = fieldsAt(data, "options")["version"] === "2" ? 2 : 1;
    const engine = type === "" ? undefined : KV_ENGINE.test(type) ? version : "other";
    this.#engines.set(key, { engine, until: this.#now() + REMEMBERED_MS });
    return engine;
  }

  /** `below` is the segment that the engine inserts, which policies must include. */
  async #refused(reader: VaultReader, place: KvPlace, reply: VaultReply, below?: Below): Promise<Problem> {
    const asked = this.#asked(place);
    if (reply.status !== 403) return refused(reply, asked);
    const engine = await this.#engineOf(reader, place);
    const isMetadata = below === "metadata";
    this.#checkEngine(place, engine, below === undefined ? 1 : 2, isMetadata ? NO_METADATA : `set kv: ${engine}`);
    const path = [place.mount, ...(below === undefined ? [] : [below]), place.path].join("/");
    const what = `Vault denies read access for the ${this.#logins.describe(reader)}`;
    const advice = `allow read on ${quoted(path)} in one of its policies`;
    return new VaultProblem("VaultDenied", `${asked.place}: ${what}; ${advice}`);
  }

  #get(reader: VaultReader, place: KvPlace, operation: Operation, below: string[], query = ""): Promise<VaultReply> {
    return this.#send(reader, place, operation, encodePath(place.mount, ...below, place.path) + query);
  }

  async #send(reader: VaultReader, place: KvPlace, operation: Operation, path: string): Promise<VaultReply> {
    let reply: VaultReply;
    try {
      reply = await this.#logins.send(reader, { operation, method: "GET", path });
    } catch (error) {
      // A login's message already describes the login.
      if (error instanceof Problem && !OF_REQUESTS.has(error.reason)) throw error;
      throw failed(error, this.#asked(place));
    }
    await this.#cpu.run(reader.namespace, () => reply.parse());
    // A proxy may answer 404 while Vault is down. Bindings may remove missing values, so the answer must be from Vault.
    if (reply.status === 404) {
      const { data, errors, warnings } = reply.json(this.#asked(place));
      if (!isObject(data) && !Array.isArray(errors) && !Array.isArray(warnings)) throw notVault(this.#asked(place));
    }
    return reply;
  }

  #asked(place: KvPlace) {
    const { address, timeoutMs } = this.#settings;
    return { place: describe(place), server: address, timeoutMs };
  }

  #keyOf(reader: VaultReader, { mount }: KvPlace): string {
    return `${mount}|${this.#logins.keyOf(reader)}`;
  }
}

const describe = ({ mount, path }: KvPlace): string => plainPath(`${mount}/${path}`);

const timesOf = (facts: JsonObject) => ({
  createdTime: textOf(facts["created_time"]),
  deletionTime: textOf(facts["deletion_time"]),
  isDestroyed: facts["destroyed"] === true,
});

const NO_KV = "sources can read only KV secrets engines; correct mount";
const NO_METADATA = "it has no metadata: read data with kv: 1";

function wrongEngine(place: KvPlace, engine: Version | "other", advice: string): Problem {
  const is = engine === "other" ? "not a KV secrets engine" : `a secrets engine of KV version ${engine}`;
  // The engine may be upgraded, which the next read shows.
  return new Problem("InvalidBinding", `${describe(place)}: ${plainPath(place.mount)} is ${is}; ${advice}`, "OnChange");
}

function checkMount(place: KvPlace): void {
  const [first = ""] = place.mount.split("/");
  if (!OWN_MOUNTS.has(first)) return;
  throw new Problem("ForbiddenPath", `${describe(place)}: ${first}/ is reserved for Vault; ${NO_KV}`);
}
