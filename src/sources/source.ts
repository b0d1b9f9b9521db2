/**
 * Defines what a kind of source is. Each kind is one file, and one line in registry.ts; everything else works with the types
 * here. An entry of spec.sources is parsed, then resolved, then read: `Source`, `ParsedSource`, `ResolvedSource`, `LiveSource`.
 */
import type { Source } from "../api/binding.ts";
import type { Installation } from "../api/installation.ts";
import type { ObjectRef } from "../apimachinery/objects.ts";
import type { MissingPolicy, Problem } from "../apimachinery/problem.ts";
import type { CollectionSubscription } from "../cache/subscription.ts";
import type { ListedObject } from "../cache/watcher.ts";
import type { Client } from "../kube/client.ts";
import type { Discovery } from "../kube/discovery.ts";
import type { Identity } from "../kube/identity.ts";
import type { LiveSource } from "../transform/live-source.ts";
import type { ConnectionState } from "../vault/types.ts";
import type { ProducedBy } from "./grant-rules.ts";
import type { Poll, Poller } from "./poller.ts";

export interface SourceKind {
  /** Undefined for an entry of another kind. It makes no requests: the API server has validated the entry. */
  parse(entry: Source, binding: ParseContext): ParsedSource | undefined;
}

/** What the binding says besides the entry. */
export interface ParseContext {
  readonly namespace: string;
  /** The entry's own, or that of spec.defaults. */
  readonly policy: MissingPolicy;
}

export interface ParsedSource {
  /** The name that fields and templates use. */
  readonly name: string;
  readonly policy: MissingPolicy;
  /** What a field names in it: a key, or the path of a field. */
  readonly addressedBy: "key" | "fieldPath";
  /** The Secret or ConfigMap that it is. Pods can refer to it, so `consumersOf` can too. */
  readonly data?: {
    readonly kind: "Secret" | "ConfigMap";
    readonly namespace: string;
    readonly name: string;
    /** It is of another namespace, or the binding says `granted`. */
    readonly needsGrant: boolean;
  };
  /** How it is read from Vault. */
  readonly vault?: {
    /** The VaultConnection. */
    readonly connection: ObjectRef;
    /** The connection is of another namespace, or the binding says `granted`. */
    readonly needsGrant: boolean;
    /** For people, such as `data kv/registry/s3`. */
    readonly reads: string;
  };
  /** The SecretProviderClass that it is. Pods can mount it, so `consumersOf` can name it. */
  readonly providerClass?: { readonly namespace: string; readonly name: string };
  /** The keys that count for a restart where no field names one, in place of all: the others are notes about the value. */
  readonly valueKeys?: readonly string[];
  /** What status calls it where it needs a SecretGrant. */
  readonly grantedAs?: string;
  /** The namespace in which a Secret protects its values as well as the source does. Undefined if they are no secrets. */
  readonly secretIn?: string;
  /** What messages call it before it is resolved. */
  describe(): { kind: string; name: string };
  /** Whether it is this object: a binding can't create what it reads. */
  isObject(ref: ObjectRef): boolean;
  /** Finds the object that it is; absent if it is none. Throws Problem("KindNotFound"). */
  locate?(discovery: Pick<Discovery, "byPlural">): Promise<ObjectRef>;
  /** Throws Problem. It asks no server: see Poll. */
  resolve(context: ResolveContext): Promise<ResolvedSource>;
}

/** What a source is resolved and read with. */
export interface ResolveContext {
  readonly discovery: Pick<Discovery, "byPlural">;
  readonly installation: Pick<Installation, "scope" | "closedNamespace">;
  /** Reads the objects that are sources. Bindings of one account share reads, so nothing may change what it returns. */
  readonly client: Pick<Client, "get">;
  /** The binding's account. */
  readonly identity: Identity;
  /** Of the binding's ServiceAccount; undefined until it is known that it exists. */
  readonly accountUid: string | undefined;
  /** The VaultConnection of that name. Undefined if there is none. */
  readonly vault: { get(namespace: string, name: string): ConnectionState | undefined };
  /** What the servers answered that polled sources are read from. */
  readonly polls: Pick<Poller, "stateOf">;
  /** Which composition makes the binding at the moment. The binding is requeued when that changes. */
  compositionOf(): ProducedBy;
}

/**
 * Identifies a source in digests: for an object its group, kind, namespace and name. Two sources never have the same place, but
 * for versions of one path, and a place never changes, because every workload would restart.
 */
export type SourcePlace = readonly [group: string, kind: string, namespace: string, name: string];

interface Resolved {
  readonly place: SourcePlace;
  /** What messages and status call it, such as `Secret registry/bucket`. */
  readonly description: string;
  readonly policy: MissingPolicy;
  /** The object that a SecretGrant in its namespace has to open before anything is read. */
  readonly grantedObject?: ObjectRef;
  /** Its labels, where they are known before anything is read. */
  readonly grantedLabels?: Readonly<Record<string, string>>;
}

interface ReadByItself extends Resolved {
  readonly listed?: undefined;
  /**
   * Reads all of it at once, as the binding's account: of the version `seen` on the watch or later. A Problem is a result,
   * because other targets may not need this source.
   */
  read(seen: string | undefined): Promise<LiveSource | Problem>;
}

/** A source that is an object: the watch says which version it has. */
export interface WatchedSource extends ReadByItself {
  readonly watched: ObjectRef;
}

/** A source that nothing watches: a server is asked again and again. */
export interface PolledSource extends ReadByItself {
  readonly watched?: undefined;
  /** Undefined until it is known how to ask: the binding waits, and is requeued then. */
  readonly poll: Poll | undefined;
}

/** A source that many objects make up: the watch shows all that is needed of each. */
export interface ListedSource extends Resolved {
  readonly watched?: undefined;
  readonly listed: Pick<CollectionSubscription, "resource" | "namespace" | "fields" | "having">;
  toLive(members: readonly ListedObject[]): LiveSource;
}

export type ResolvedSource = WatchedSource | PolledSource | ListedSource;
