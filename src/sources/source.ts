/**
 * Defines a kind of source. Each kind is one file, and one line in registry.ts; all other code uses the types here. An entry of
 * spec.sources is parsed, then resolved, then read: `Source`, `ParsedSource`, `ResolvedSource`, `LiveSource`.
 */
import type { Source } from "../api/binding.ts";
import type { Installation } from "../api/installation.ts";
import type { KubeObject, ObjectRef, Resource } from "../apimachinery/objects.ts";
import type { MissingPolicy, Problem } from "../apimachinery/problem.ts";
import type { CollectionSubscription } from "../cache/subscription.ts";
import type { ListedObject } from "../cache/watcher.ts";
import type { Client } from "../kube/client.ts";
import type { Discovery } from "../kube/discovery.ts";
import type { Permission } from "../kube/grant-commands.ts";
import type { Identity } from "../kube/identity.ts";
import type { LiveSource } from "../transform/live-source.ts";
import type { ProducedBy } from "./grant-rules.ts";
import type { Poll } from "./poll.ts";
import type { Poller } from "./poller.ts";

export interface SourceKind {
  /** Undefined for an entry of another kind. Makes no requests: the API server has validated the entry. */
  parse(entry: Source, binding: ParseContext): ParsedSource | undefined;
  /** For a store: the parts of the file that replaces it on the command line, by name. No other kind has a part of that name. */
  readonly fileParts?: Readonly<Record<string, FilePart>>;
  /** For a store: the objects through which it is read. */
  readonly connection?: ConnectionKind;
}

/** A part of the file of values: a mapping of keys, each with its fields. */
export interface FilePart {
  /** The fields of a key, such as `{KEY: VALUE}`. */
  readonly example: string;
  /** What is wrong with a key; undefined if it is right. */
  wrongKey(key: string): string | undefined;
  /** Keys of the same text are the same key. By default, the key itself. */
  keyOf?(key: string): string;
}

/** A kind of object that describes how to reach a store, such as VaultConnection. Its condition Ready shows whether that works. */
export interface ConnectionKind {
  readonly resource: Resource;
  /** The field of an entry of spec.sources whose field `connection` names the object. */
  readonly field: string;
  /** Its state on the command line, where it counts as ready. `object` is undefined if it is not in the files. */
  fromFile(object: KubeObject | undefined): ConnectionState;
  /** The Secrets and ConfigMaps that an object names in its own namespace. */
  namedBy(object: KubeObject): readonly NamedByConnection[];
  /** The object's own account with what it needs, if Inlay impersonates it. */
  access(object: KubeObject): { readonly account: ObjectRef; readonly permissions: readonly Permission[] } | undefined;
}

/** A Secret or ConfigMap that a connection names. */
export interface NamedByConnection {
  readonly ref: ObjectRef;
  /** The field that names it, such as `spec.tls.ca.secret.name`. */
  readonly place: string;
  /** What it is to the connection, such as `CA`. */
  readonly use: string;
}

/** The present state of a connection. A store knows more of one that is ready. */
type ConnectionState =
  | { readonly phase: "pending" }
  | { readonly phase: "failed"; readonly problem: Problem; readonly labels: Labels }
  | { readonly phase: "ready"; readonly labels: Labels };

/** The labels of a connection, which SecretGrants select by. */
type Labels = Readonly<Record<string, string>>;

/** Settings of the binding besides the entry. */
export interface ParseContext {
  readonly namespace: string;
  /** The entry's own policy, or that of spec.defaults. */
  readonly policy: MissingPolicy;
}

export interface ParsedSource {
  /** The name that fields and templates use. */
  readonly name: string;
  readonly policy: MissingPolicy;
  /** How a field addresses a value in it: by a key, or by the path of a field. */
  readonly addressedBy: "key" | "fieldPath";
  /** The Secret or ConfigMap, if it is one. Pods can refer to it, so `consumersOf` can too. */
  readonly data?: {
    readonly kind: "Secret" | "ConfigMap";
    readonly namespace: string;
    readonly name: string;
    /** It is in another namespace, or the binding sets `granted`. */
    readonly needsGrant: boolean;
  };
  /** How it is read from a store outside of the cluster, if it is. */
  readonly store?: {
    /** The product, such as `Vault`. */
    readonly product: string;
    /** For messages, such as `data kv/registry/s3`. */
    readonly reads: string;
    /** The object through which it is read, if the store has such objects. */
    readonly connection?: {
      readonly ref: ObjectRef;
      /** It is in another namespace, or the binding sets `granted`. */
      readonly needsGrant: boolean;
    };
    /** The permissions of the binding's account, if the state of the connection decides on any. */
    access?(account: ObjectRef, connection: ConnectionState | undefined): readonly Permission[];
  };
  /** The SecretProviderClass, if it is one. Pods can mount it, so `consumersOf` can name it. */
  readonly providerClass?: { readonly namespace: string; readonly name: string };
  /** The keys that cause a restart if no field names a key; by default all. The others only describe the value. */
  readonly valueKeys?: readonly string[];
  /** Its name in status if it needs a SecretGrant. */
  readonly grantedAs?: string;
  /** The namespace in which a Secret protects its values as well as the source does. Undefined if the values are not secret. */
  readonly secretIn?: string;
  /** Its kind and name in messages before it is resolved. */
  describe(): { kind: string; name: string };
  /** Whether it is this object: a binding can't create an object that it reads. */
  isObject(ref: ObjectRef): boolean;
  /** Finds its object; absent if it has none. Throws Problem("KindNotFound"). */
  locate?(discovery: Pick<Discovery, "byPlural" | "kindNotFound">): Promise<ObjectRef>;
  /** Throws Problem. Sends no request to a server outside of the cluster: see Poll. */
  resolve(context: ResolveContext): Promise<ResolvedSource>;
}

/** The states of the objects through which stores are read. */
export interface Connections {
  /** Undefined if there is no such object. */
  get(ref: ObjectRef): ConnectionState | undefined;
}

/** The services for resolving and reading a source. */
export interface ResolveContext {
  readonly discovery: Pick<Discovery, "byPlural" | "kindNotFound">;
  readonly installation: Pick<Installation, "scope" | "closedNamespace" | "limits">;
  /** Reads the source objects. Bindings of one account share reads, so callers must not change the results. */
  readonly client: Pick<Client, "get">;
  /** The binding's account. */
  readonly identity: Identity;
  /** The uid of the binding's ServiceAccount; undefined until it is known to exist. */
  readonly accountUid: string | undefined;
  readonly connections: Connections;
  /** The answers for polled sources. */
  readonly polls: Pick<Poller, "stateOf">;
  /** The composition that composes the binding at the moment. The binding is requeued when that changes. */
  compositionOf(): ProducedBy;
}

/**
 * Identifies a source in digests: for an object its group, kind, namespace and name. Two sources never have the same place, except versions
 * of one path. A place must never change, because every workload would restart.
 */
export type SourcePlace = readonly [group: string, kind: string, namespace: string, name: string];

interface Resolved {
  readonly place: SourcePlace;
  /** Its name in messages and status, such as `Secret registry/bucket`. */
  readonly description: string;
  readonly policy: MissingPolicy;
  /** The object that a SecretGrant in its namespace must permit before anything is read. */
  readonly grantedObject?: ObjectRef;
  /** Its labels, if they are known before anything is read. */
  readonly grantedLabels?: Readonly<Record<string, string>>;
}

interface ReadByItself extends Resolved {
  readonly listed?: undefined;
  /**
   * Reads all of it at once with the binding's account, in the version `seen` on the watch or later. A Problem is a result, because other
   * targets may not need this source.
   */
  read(seen: string | undefined): Promise<LiveSource | Problem>;
}

/** A source that is one object. The watch shows its version. */
export interface WatchedSource extends ReadByItself {
  readonly watched: ObjectRef;
  /** The object as a source; undefined if it does not exist. Throws Problem. */
  fromObject(object: KubeObject | undefined): LiveSource;
}

/** A source without a watch: a server is polled. */
export interface PolledSource extends ReadByItself {
  readonly watched?: undefined;
  /** Undefined until the request is known: the binding waits, and is requeued then. */
  readonly poll: Poll | undefined;
}

/** A source that consists of many objects. The watch shows all that is needed of each. */
export interface ListedSource extends Resolved {
  readonly watched?: undefined;
  readonly listed: Pick<CollectionSubscription, "resource" | "namespace" | "fields" | "having">;
  /** Yields where it may be interrupted: there may be very many objects. */
  toLive(members: readonly ListedObject[]): Generator<void, LiveSource | Problem>;
}

export type ResolvedSource = WatchedSource | PolledSource | ListedSource;
