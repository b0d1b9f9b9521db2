/**
 * Opens streams when slots are free, and closes them. Reports changes to their subscribers, and refused streams to the owner of this class.
 */
import { getOrInsert, SetsByKey } from "../apimachinery/maps.ts";
import { type KubeObject, type Resource, resourceName } from "../apimachinery/objects.ts";
import { ApiError } from "../kube/api-error.ts";
import { CONTROLLER, type Identity } from "../kube/identity.ts";
import { ListWatch, type Scope, type WatchTransport } from "../kube/list-watch.ts";
import { Slots } from "../workqueue/slots.ts";
import { SlowBucket } from "../workqueue/slow-bucket.ts";
import { type CachedObject, classifyChange, type Projection, withHistory } from "./cached-object.ts";
import type { ChangedObjects } from "./changed-objects.ts";
import {
  objectKey,
  Reflector,
  type ReflectorEvents,
  type RestartReason,
  type StreamState,
  takesTurns,
} from "./reflector.ts";
import {
  CollectionIndex,
  KeptFields,
  KeptTotals,
  notifyAll,
  notifyOf,
  type Stream,
  stateOf,
  subscribersOf,
} from "./stream.ts";

/** A stream takes 29 KB, and the pod has 1 GiB. */
const STREAM_LIMITS = { namespace: 1_000, installation: 12_000 };
/** Limits of streams that are being opened. A list and a watch take the API server some ms, during which it serves nothing else. */
const OPENING_LIMITS = { namespace: 8, installation: 32 };
/**
 * A namespace may take at most this part of the free slots, so most stay free for others. About forty namespaces with a thousand streams
 * each are needed to use up all slots.
 */
const PART_OF_THE_REST = 1 / 4;

/** Limits the streams of each namespace and in total. */
export const streamSlots = (most: typeof STREAM_LIMITS): Slots =>
  new Slots((taken, total) => taken < Math.min(most.namespace, (most.installation - total) * PART_OF_THE_REST));

/** For a kind, the paths of pod templates and restart fields that the bindings of one namespace may name, besides the usual ones. */
export const MAX_PROJECTIONS = 8;

/** Limits the different projections of a group. The streams with one projection share its slot. */
export class ProjectionSlots {
  readonly #slots = new Slots((taken) => taken < MAX_PROJECTIONS);
  /** The streams of each projection that has or needs a slot, with what opens them. */
  readonly #openers = new Map<string, Map<string, () => void>>();

  /** Calls `open`: at once, or when the projection has a slot. */
  take(group: string, projection: string, stream: string, open: () => void): void {
    const openers = getOrInsert(this.#openers, idOf(group, projection), () => new Map<string, () => void>());
    openers.set(stream, open);
    if (this.#slots.has(group, projection)) open();
    else if (openers.size === 1) this.#slots.take(group, projection, () => openers.forEach((each) => void each()));
  }

  /** Removes a stream. The last one of a projection releases its slot. */
  release(group: string, projection: string, stream: string): void {
    const id = idOf(group, projection);
    const openers = this.#openers.get(id);
    if (!openers?.delete(stream) || openers.size > 0) return;
    this.#openers.delete(id);
    this.#slots.release(group, projection);
  }

  /** Opens nothing from now on. */
  stop(): void {
    this.#slots.stop();
  }
}

const idOf = (group: string, projection: string) => `${group}|${projection}`;

/** Called whenever a watch ended and is started again. */
export type RestartHandler = (resource: Resource, reason: RestartReason) => void;

/** Does work on behalf of a namespace, at once or when it is its turn. */
export type RunFor = (namespace: string, work: () => void) => Promise<void>;

/** Events of a stream, for the code that decides how wide it is. */
export interface StreamEvents {
  /** The API server denies the stream to its identity. Called before the subscribers are notified. */
  refused(stream: Stream, error: ApiError): void;
  /** It had to wait, and has now received something. */
  opened(stream: Stream): void;
  /** It is in sync, and was refused before. */
  recovered(stream: Stream): void;
  /** An object was not read, because of an error in Inlay. */
  unread(resource: Resource, object: KubeObject, error: unknown): void;
  /** The API server ended it as usual, and it is restarted. */
  ended(stream: Stream): void;
}

/** The rate at which refused streams are retried, for all accounts together. A refused list takes 0.2 ms. */
const RETRIES_A_SECOND = 10;
const NO_ROOM = new ApiError("WATCH", 0, "TooManyStreams");
const TOO_MANY_PATHS = new ApiError("WATCH", 0, "TooManyPaths");

type Keep = ReflectorEvents<CachedObject>["keep"];

export class Streams {
  readonly #transport: WatchTransport;
  readonly #restarted: RestartHandler;
  readonly #changed: Pick<ChangedObjects, "offer">;
  readonly #events: StreamEvents;
  readonly #run: RunFor | undefined;
  readonly #streams = new Map<string, Stream>();
  readonly #slots = streamSlots(STREAM_LIMITS);
  /** Slots of streams that were started and have received nothing yet. */
  readonly #opening = streamSlots(OPENING_LIMITS);
  readonly #projections = new ProjectionSlots();
  readonly #kept = new KeptTotals();
  readonly #retries = new SlowBucket(RETRIES_A_SECOND);

  constructor(
    transport: WatchTransport,
    restarted: RestartHandler,
    changed: Pick<ChangedObjects, "offer">,
    events: StreamEvents,
    run?: RunFor,
  ) {
    this.#transport = transport;
    this.#restarted = restarted;
    this.#changed = changed;
    this.#events = events;
    this.#run = run;
  }

  /** The state of each stream. */
  get states(): StreamState[] {
    return [...this.#streams.values()].map(stateOf);
  }

  get(key: string): Stream | undefined {
    return this.#streams.get(key);
  }

  /** Opens a stream as soon as a slot is free and it is its turn. */
  open(
    of: Pick<Stream, "key" | "watchScope" | "tenant" | "ownPaths">,
    identity: Identity,
    scope: Scope,
    keep: Projection,
  ): Stream {
    const stream: Stream = {
      ...of,
      resource: scope.resource,
      held: undefined,
      wasRefused: false,
      wasSynced: false,
      subscribers: new SetsByKey(),
      consumers: new SetsByKey(),
      index: new CollectionIndex(),
      // What the whole cluster shares, or an account that may list a kind in the whole cluster, is not multiplied by tenants.
      kept: new KeptFields(this.#kept, of.tenant, scope.namespace !== undefined),
      reflector: undefined,
    };
    this.#streams.set(of.key, stream);
    const { tenant, key } = stream;
    const start = () => {
      // With a selector, an object may be added because its labels or fields changed.
      const showsCreations = (scope.labels ?? "") === "" && scope.fields === undefined;
      const source = new ListWatch(this.#transport, identity, scope);
      const served = identity === CONTROLLER ? undefined : scope.namespace;
      stream.reflector = this.#reflectorOf(stream, source, served, (object, before, { since, isAdded, isWhole }) => {
        if (isWhole && scope.form === "changes") this.#offer(stream, identity, object);
        const { namespace, name } = object.metadata;
        const shown = { since, isCreation: isAdded && showsCreations };
        const after = withHistory(this.#keptOf(stream, object, keep), before, object.metadata, shown);
        return stream.kept.keep(objectKey(namespace, name), after, before);
      });
      stream.reflector.start();
    };
    if (tenant === undefined) start();
    else {
      let hasRoom = false;
      stream.held = TOO_MANY_PATHS;
      this.#inProjection(stream, () => {
        stream.held = NO_ROOM;
        this.#slots.take(tenant, key, () => {
          hasRoom = true;
          this.#opening.take(tenant, key, start);
        });
      });
      if (hasRoom) stream.held = undefined;
    }
    return stream;
  }

  /** The kept part of an object. One that can't be read must not stop the stream, which others share. */
  #keptOf({ resource }: Stream, object: KubeObject, keep: Projection): CachedObject {
    try {
      return keep(object);
    } catch (error) {
      this.#events.unread(resource, object, error);
      const { uid, resourceVersion, generation } = object.metadata;
      return { uid, resourceVersion, generation, isTooLarge: true };
    }
  }

  /** Offers the values of a changed object that has a subscriber by its name. */
  #offer({ resource, subscribers }: Stream, identity: Identity, object: KubeObject): void {
    const { namespace, name } = object.metadata;
    if (!subscribers.has(objectKey(namespace, name))) return;
    this.#changed.offer(identity, { resource, name, ...(namespace && { namespace }) }, object);
  }

  /** Calls `open` once the paths of a stream are among those that its namespace may name for the kind. */
  #inProjection(stream: Stream, open: () => void): void {
    const { key, ownPaths } = stream;
    if (ownPaths === undefined) open();
    else this.#projections.take(groupOf(stream), ownPaths, key, open);
  }

  close(stream: Stream): void {
    const { key, tenant, ownPaths, reflector } = stream;
    this.#streams.delete(key);
    void reflector?.stop();
    stream.kept.end();
    this.#opened(stream);
    if (tenant !== undefined) this.#slots.release(tenant, key);
    if (ownPaths !== undefined) this.#projections.release(groupOf(stream), ownPaths, key);
  }

  async stop(): Promise<void> {
    this.#slots.stop();
    this.#opening.stop();
    this.#projections.stop();
    await Promise.all([...this.#streams.values()].map(({ reflector }) => reflector?.stop()));
    this.#streams.clear();
  }

  /** The stream has received something, or is closed, so the next one may be opened. */
  #opened({ key, tenant }: Stream): void {
    if (tenant !== undefined) this.#opening.release(tenant, key);
  }

  /** What serves one namespace alone is done on its behalf. */
  #reflectorOf(stream: Stream, source: ListWatch, served: string | undefined, keep: Keep): Reflector<CachedObject> {
    const { resource, kept, tenant = "" } = stream;
    const run = this.#run;
    const reflector: Reflector<CachedObject> = new Reflector<CachedObject>(source, {
      keep,
      ...(run && served !== undefined && { run: (work) => run(served, work) }),
      changed: (key, after, before) => {
        if (after === undefined) kept.gone(key, before);
        stream.index.changed(reflector, key, after, before);
        const news = classifyChange(after, before);
        if (news !== "none") notifyOf(stream, key, after, before, news);
      },
      stateChanged: (state) => {
        // A closed stream has given its slot to others.
        if (this.#streams.get(stream.key) !== stream) return;
        if (stream.held !== undefined) this.#events.opened(stream);
        stream.held = undefined;
        this.#opened(stream);
        stream.wasSynced ||= state.phase === "synced";
        if (state.phase === "failed") {
          stream.wasRefused ||= takesTurns(state.error);
          if (state.error.status === 403) this.#events.refused(stream, state.error);
        } else if (state.phase === "synced" && stream.wasRefused) {
          stream.wasRefused = false;
          this.#retries.refund();
          this.#events.recovered(stream);
        }
        notifyAll(subscribersOf(stream), "resync");
      },
      restarted: (reason) => {
        kept.recount(reflector.keys(), (key) => reflector.get(key));
        this.#restarted(resource, reason);
        if (reason === "ended") this.#events.ended(stream);
      },
      turn: (signal) => this.#retries.take(tenant, signal),
    });
    return reflector;
  }
}

/** The streams of one namespace for one kind, in any version. */
const groupOf = ({ tenant, resource }: Stream) => `${tenant}|${resourceName(resource)}`;
