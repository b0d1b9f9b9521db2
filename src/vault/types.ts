/** Types that the sources and the controller of VaultConnections share. Types only. */
import type { Problem } from "../apimachinery/problem.ts";
import type { SecretValue } from "../apimachinery/secret-value.ts";
import type { Identity } from "../kube/identity.ts";

/** The reader of a path. It decides which login is used, and so what Vault allows. */
export interface VaultReader {
  /** The account of the binding. */
  readonly identity: Identity;
  /** The uid of that ServiceAccount. A later ServiceAccount of the same name is another reader. */
  readonly uid?: string;
  /** The value of {namespace}. */
  readonly namespace: string;
}

/** A place in a KV secrets engine. */
export interface KvPlace {
  readonly mount: string;
  readonly path: string;
}

export interface KvDataPlace extends KvPlace {
  /** The version to read; the current one unless given. */
  readonly version?: number;
  /** The version of the secrets engine. */
  readonly kv: 1 | 2;
}

/** The result of a read. `content` is undefined if nothing is there: deleted, destroyed, or no such path. */
export interface VaultAnswer {
  /** Changes with the content. Contains no value, and no hash of one that another process could repeat. */
  readonly version: string;
  readonly content: VaultContent | undefined;
  /** The approximate size of the content in memory, in bytes. */
  readonly size: number;
  /** When to read again, in ms, if not at the usual interval. */
  readonly refreshMs?: number;
}

export interface VaultContent {
  /** By key, as text: a value that is not a JSON string is its JSON text, with numbers as Vault spells them. */
  readonly data: ReadonlyMap<string, SecretValue<Uint8Array>>;
  /** The custom_metadata of the path; empty for KV version 1 and for health. */
  readonly custom: SecretValue<Readonly<Record<string, string>>>;
}

/** A Vault server by the settings of one VaultConnection. Every method throws Problem, with mount and path, and never Vault's own text. */
export interface VaultConnected {
  /**
   * Identifies the login of a reader: readers of the same text share a login, and what they read.
   */
  loginOf(reader: VaultReader): string;
  /** Retries failed logins at the next read, without the rest of their backoff. */
  retryLogins(): void;
  /** Reads the metadata first, and returns `last` itself if it is still valid. */
  data(reader: VaultReader, place: KvDataPlace, last: VaultAnswer | undefined): Promise<VaultAnswer>;
  /** Never requests data. */
  metadata(reader: VaultReader, place: KvPlace): Promise<VaultAnswer>;
  /**
   * Needs no login. Reads the server at `address`, by default the connection's. Returns `last` while the state of the server is unclear.
   */
  health(address: string | undefined, last: VaultAnswer | undefined): Promise<VaultAnswer>;
}

/** The present state of a VaultConnection. */
export type ConnectionState =
  | { readonly phase: "pending" }
  | {
      readonly phase: "failed";
      readonly problem: Problem;
      readonly labels: Readonly<Record<string, string>>;
    }
  | {
      readonly phase: "ready";
      /** Changes with the settings that decide what is read and how: the spec, and the Secrets and ConfigMaps that it names. */
      readonly revision: string;
      readonly connected: VaultConnected;
      /** Globs of mount/path, with {namespace}. */
      readonly paths: readonly string[];
      /** The labels of the VaultConnection, which SecretGrants select by. */
      readonly labels: Readonly<Record<string, string>>;
      /** Whether the account of each binding logs in, so that it needs a token of its own. */
      readonly usesAccountTokens: boolean;
    };
