/** What the sources and the controller of VaultConnections share about a Vault server. Types only. */
import type { Problem } from "../apimachinery/problem.ts";
import type { SecretValue } from "../apimachinery/secret-value.ts";
import type { Identity } from "../kube/identity.ts";

/** For whom something is read. It decides about the login, and so about what Vault allows. */
export interface VaultReader {
  /** The account of the binding. */
  readonly identity: Identity;
  /** Of that ServiceAccount. One that is created later under its name is another reader. */
  readonly uid?: string;
  /** What {namespace} stands for. */
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

/** What was read. `content` is undefined where nothing is there: deleted, destroyed, or no such path. */
export interface VaultAnswer {
  /** Changes with the content. It holds no value, and no hash of one that another process could repeat. */
  readonly version: string;
  readonly content: VaultContent | undefined;
  /** When to ask again, in ms, if that is not as usual. */
  readonly refreshMs?: number;
}

export interface VaultContent {
  /** By key, as text: a value that is not a JSON string is its JSON text, with numbers as Vault spells them. */
  readonly data: ReadonlyMap<string, SecretValue<Uint8Array>>;
  /** The custom_metadata of the path; empty for KV version 1 and for health. */
  readonly custom: SecretValue<Readonly<Record<string, string>>>;
}

/** A Vault server as one VaultConnection reaches it. Every method throws Problem, with mount and path, and never Vault's own text. */
export interface VaultConnected {
  /**
   * Identifies the login of a reader: readers of the same text share a login, and what they read.
   */
  loginOf(reader: VaultReader): string;
  /** Has logins that failed tried with the next read, and not only when their backoff has ended. */
  retryLogins(): void;
  /** Asks for as little as tells whether `last` is still true, and returns `last` itself then. */
  data(reader: VaultReader, place: KvDataPlace, last: VaultAnswer | undefined): Promise<VaultAnswer>;
  /** Never requests data. */
  metadata(reader: VaultReader, place: KvPlace): Promise<VaultAnswer>;
  /** Without a login. The server at `address`, by default that of the connection. `last` is returned while it is not clear how the server is. */
  health(address: string | undefined, last: VaultAnswer | undefined): Promise<VaultAnswer>;
}

/** How a VaultConnection is at the moment. */
export type ConnectionState =
  | { readonly phase: "pending" }
  | {
      readonly phase: "failed";
      readonly problem: Problem;
      readonly labels: Readonly<Record<string, string>>;
    }
  | {
      readonly phase: "ready";
      /** Changes with all that decides what is read and how: the spec, and the Secrets and ConfigMaps that it names. */
      readonly revision: string;
      readonly connected: VaultConnected;
      /** Globs of mount/path, with {namespace}. */
      readonly paths: readonly string[];
      /** Of the VaultConnection. SecretGrants select by them. */
      readonly labels: Readonly<Record<string, string>>;
    };
