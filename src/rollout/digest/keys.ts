/**
 * Reads the digest keys from one Secret in the controller's namespace. If there is no key, the first replica creates one for the
 * installation. deploy/ contains the Secret without data, so that the controller needs permissions for that one name only.
 */
import { randomBytes } from "node:crypto";
import { CONTROLLER_MANAGER } from "../../api/field-manager.ts";
import { describeObject, type KubeObject, type ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { SECRETS } from "../../apimachinery/resources.ts";
import { SecretValue } from "../../apimachinery/secret-value.ts";
import { OWN_ACCOUNT, refusal } from "../../kube/access-error.ts";
import { ApiError, isNotFound, isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { CONTROLLER } from "../../kube/identity.ts";
import type { DigestKey } from "./digest.ts";

export const DIGEST_KEY_NAME = "inlay-digest-key";
/** The entry with the id of the key in use. Every other entry is a key, under its id. */
const PRIMARY = "primary";

const VERBS = ["get", "patch"];
const KEY_BYTES = 32;
/** Another replica may write the Secret at the same time, but not forever. */
const TRIES = 5;
/** How long a failure is shared: thousands of bindings that wait for the Secret read it once. */
const FAILED_FOR_MS = 1_000;

interface StoredSecret extends KubeObject {
  data?: Record<string, string>;
}

interface Keys {
  primary: DigestKey;
  byId: ReadonlyMap<string, DigestKey>;
}

/** The content of the Secret. The key in use may be missing. */
interface Found {
  version: Pick<KubeObject["metadata"], "uid" | "resourceVersion">;
  primary: string | undefined;
  byId: Map<string, DigestKey>;
}

export class DigestKeys {
  readonly #client: Pick<Client, "get" | "mergePatch">;
  readonly #ref: ObjectRef & { namespace: string };
  /** Read once. Another primary counts from the next start, and the known keys stay in use if the Secret is deleted. */
  #keys: Promise<Keys> | undefined;
  /** Whether a rollout has needed a key. */
  #isUsed = false;

  /** `namespace` is the controller's own. */
  constructor(client: Pick<Client, "get" | "mergePatch">, namespace: string) {
    this.#client = client;
    this.#ref = { resource: SECRETS, namespace, name: DIGEST_KEY_NAME };
  }

  /**
   * The key for new digests; the first call creates it if there is none. Throws Problem("NoDigestKey"), ("Forbidden") and
   * ("Unavailable"); a later call tries again.
   */
  async primary(): Promise<DigestKey> {
    return (await this.#read()).primary;
  }

  /** The key of older digests; undefined if it no longer exists. Throws like `primary`. */
  async byId(id: string): Promise<DigestKey | undefined> {
    return (await this.#read()).byId.get(id);
  }

  /**
   * Returns why the Secret lacks the key in use. If the Secret was deleted and created again without data, all known keys are stored in it, so
   * that the next start continues with them. Until a rollout needs a key, there is nothing to check. Throws like `primary`.
   */
  async verify(): Promise<Problem | undefined> {
    if (!this.#isUsed) return undefined;
    const { primary, byId } = await this.#read();
    const found = await this.#find(
      "; the controller has it in memory, and stores it there again unless it stops before",
    );
    const stored = found.byId.get(primary.id);
    if (stored !== undefined && isSame(stored, primary)) return undefined;
    if (found.primary === undefined && found.byId.size === 0) {
      await this.#store(found, primary, byId.values());
      return undefined;
    }
    return new Problem(
      "NoDigestKey",
      `${this.#what} has other keys than the one in use, which is lost when the controller stops; restore it from a backup. Otherwise restart ` +
        "the controller when no rollout is pending: the current values then become the new baseline",
    );
  }

  #read(): Promise<Keys> {
    this.#isUsed = true;
    if (this.#keys !== undefined) return this.#keys;
    this.#keys = this.readOrCreate();
    const forget = () => {
      this.#keys = undefined;
    };
    this.#keys.catch(() => setTimeout(forget, FAILED_FOR_MS).unref());
    return this.#keys;
  }

  async readOrCreate(): Promise<Keys> {
    for (let left = TRIES; left > 0; left--) {
      const found = await this.#find();
      const keys = found.primary === undefined ? await this.#create(found) : this.#inUse(found.primary, found.byId);
      if (keys !== undefined) return keys;
    }
    throw new Problem("Unavailable", `${this.#what} changes faster than Inlay can write it; Inlay retries`);
  }

  /** `note` is added to the message for a missing Secret. */
  async #find(note = ""): Promise<Found> {
    const { metadata, data = {} } = await this.#client.get<StoredSecret>(CONTROLLER, this.#ref).catch((error) => {
      throw this.#explained(error, "get", note);
    });
    const { [PRIMARY]: primary, ...rest } = data;
    return {
      version: { uid: metadata.uid, resourceVersion: metadata.resourceVersion },
      primary: primary === undefined ? undefined : Buffer.from(primary, "base64").toString("utf8"),
      byId: new Map(Object.entries(rest).flatMap(([id, text]) => keyOf(id, Buffer.from(text, "base64")))),
    };
  }

  /** Undefined if another client wrote meanwhile. Existing keys stay, for the digests that were computed with them. */
  async #create(found: Found): Promise<Keys | undefined> {
    // With its date, for users who remove old keys.
    const id = `${new Date().toISOString().slice(0, 10)}-${randomBytes(4).toString("hex")}`;
    const primary = { id, bytes: new SecretValue<Uint8Array>(randomBytes(KEY_BYTES)) };
    const isStored = await this.#store(found, primary, [primary]);
    return isStored ? { primary, byId: new Map(found.byId).set(id, primary) } : undefined;
  }

  /** Stores keys, and which of them is in use. False if another client wrote meanwhile. */
  async #store({ version }: Found, primary: DigestKey, keys: Iterable<DigestKey>): Promise<boolean> {
    const base64 = (value: string | Uint8Array) => Buffer.from(value).toString("base64");
    const stored = Object.fromEntries(Array.from(keys, ({ id, bytes }) => [id, base64(bytes.reveal())]));
    const data = { ...stored, [PRIMARY]: base64(primary.id) };
    try {
      await this.#client.mergePatch(CONTROLLER, this.#ref, { metadata: version, data }, CONTROLLER_MANAGER);
      return true;
    } catch (error) {
      if (isStatus(error, 409)) return false;
      throw this.#explained(error, "patch");
    }
  }

  #inUse(id: string, byId: ReadonlyMap<string, DigestKey>): Keys {
    const primary = byId.get(id);
    if (primary !== undefined) return { primary, byId };
    throw new Problem("NoDigestKey", {
      what: `${this.#what} names in ${PRIMARY} a key that it lacks, or that has fewer than ${KEY_BYTES} bytes`,
      fix: "restore that key, or let Inlay create a new one, which restarts no workload,",
      command: `kubectl patch secret ${DIGEST_KEY_NAME} -n ${this.#ref.namespace} --type=json -p '[{"op":"remove","path":"/data/${PRIMARY}"}]'`,
    });
  }

  #explained(error: unknown, verb: string, note = ""): Problem {
    const { namespace, name } = this.#ref;
    if (isNotFound(error)) {
      const why = `there is no ${this.#what}, which stores the digest key`;
      const command = `kubectl create secret generic ${name} -n ${namespace}`;
      return new Problem("NoDigestKey", { what: `${why}${note}`, fix: "create it empty", command });
    }
    if (isStatus(error, 403) && !error.isDenied) {
      const command =
        `kubectl create role ${name} -n ${namespace} --verb=${VERBS} --resource=secrets --resource-name=${name}` +
        ` && kubectl create rolebinding ${name} -n ${namespace} --role=${name} --serviceaccount=${namespace}:${OWN_ACCOUNT}`;
      const what = `Inlay's own account may not ${verb} secrets/${name} in namespace ${namespace}`;
      return new Problem("Forbidden", {
        what,
        fix: "apply 10-controller-role.yaml of this release, or allow it",
        command,
      });
    }
    const problem = refusal(error, { identity: CONTROLLER, ref: this.#ref, verbs: VERBS }, verb);
    if (problem.reason !== "Rejected" || !(error instanceof ApiError)) return problem;
    const why = `the API server refused to ${verb} ${this.#what} (${error.status} ${error.reason})`;
    const cause = "check for an admission policy, and for immutable: true in that Secret";
    return new Problem("NoDigestKey", `${why}; ${cause}`);
  }

  get #what(): string {
    return describeObject("Secret", this.#ref.namespace, this.#ref.name);
  }
}

const isSame = (a: DigestKey, b: DigestKey): boolean => Buffer.compare(a.bytes.reveal(), b.bytes.reveal()) === 0;

/** Nothing for a key that is too short to be safe. */
function keyOf(id: string, bytes: Uint8Array): [string, DigestKey][] {
  return bytes.length < KEY_BYTES ? [] : [[id, { id, bytes: new SecretValue(bytes) }]];
}
