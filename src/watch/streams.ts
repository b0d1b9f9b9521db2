/**
 * Which objects each binding depends on comes in, and the key of a binding goes out whenever one of them may have
 * changed. RBAC has no verb for metadata alone, so a watch is a read: a stream belongs to the identity that may have
 * it, and is shared by the whole cluster only for kinds that the platform opened to the controller.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { isStatus } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import { CONTROLLER, type Identity } from "../kube/identity.ts";
import { ListWatch, type Scope } from "../kube/list-watch.ts";
import { isImpersonation } from "../kube/refusal.ts";
import type { Transport } from "../kube/transport.ts";
import { apiVersionOf, type KubeObject, type ObjectRef, type Resource } from "../model/kube-object.ts";
import { objectKey, Reflector, type ReflectorState, type RestartReason, type StreamState } from "./reflector.ts";

/** An object that a binding depends on, and as whom it is read. */
export interface Interest {
  identity: Identity;
  ref: ObjectRef;
}

/** All that is kept of an object: enough to tell whether it changed. */
export interface Version {
  uid: string;
  resourceVersion: string;
  generation: number | undefined;
}

/** What goes out: `cause` tells a change from the news that a stream is in step, or is not. */
export interface StreamsEvents {
  changed(dependent: string, cause: "change" | "resync"): void;
  restarted(resource: Resource, reason: RestartReason): void;
}

interface Stream {
  resource: Resource;
  reflector: Reflector<Version>;
  /** Object key -> who depends on it. A binding may do so twice, as itself and through its account. */
  subscriptions: Map<string, Set<Subscription>>;
}

/** From the widest to the narrowest stream that can carry an interest. */
const RUNGS = ["shared", "sharedName", "namespace", "name"] as const;
type Rung = (typeof RUNGS)[number];

const EVERYTHING = { group: "*", version: "*", plural: "*" };
/** How long it is believed what the controller may watch everywhere. */
const EVERYWHERE_LIVES_MS = 60_000;
const REVIEW_AGAIN_MS = 1_000;

interface Subscription {
  dependent: string;
  interest: Interest;
  /** Undefined while it is being found out which stream may carry it. */
  streamKey: string | undefined;
}

export class Streams {
  readonly #transport: Transport;
  readonly #client: Client;
  readonly #events: StreamsEvents;
  readonly #streams = new Map<string, Stream>();
  #stopped = false;
  readonly #subscriptions = new Map<string, Map<string, Subscription>>();
  /** How wide a stream may be, for all names of a kind in a namespace and one identity. */
  readonly #rungs = new Map<string, Promise<Rung>>();
  /** For which of them it is being asked whether they may be wider again. */
  readonly #widening = new Set<string>();
  /** Whether the controller may watch a kind, or one name of it, everywhere. */
  readonly #everywhere = new Map<string, { allowed: Promise<boolean>; until: number }>();

  constructor(transport: Transport, client: Client, events: StreamsEvents) {
    this.#transport = transport;
    this.#client = client;
    this.#events = events;
  }

  /** How each stream is. */
  get states(): StreamState[] {
    return [...this.#streams.values()].map(({ reflector, resource }) => reflector.stateOf(resource));
  }

  /** Replaces what `dependent` depends on. It is called back when each is first known, and at every change after. */
  observe(dependent: string, interests: readonly Interest[]): void {
    const before = this.#subscriptions.get(dependent) ?? new Map<string, Subscription>();
    const after = new Map<string, Subscription>();
    for (const interest of interests) {
      const key = interestKey(interest);
      const known = before.get(key) ?? after.get(key);
      after.set(key, known ?? { dependent, interest, streamKey: undefined });
    }
    this.#subscriptions.set(dependent, after);
    for (const [key, subscription] of after) if (!before.has(key)) void this.#subscribe(subscription);
    for (const [key, subscription] of before) if (!after.has(key)) this.#unsubscribe(subscription);
    if (after.size === 0) this.#subscriptions.delete(dependent);
  }

  /** Whether the stream that carries an interest of `dependent` is in step, and with it what the object's version is. */
  look(dependent: string, interest: Interest): ReflectorState & { version?: Version } {
    const subscription = this.#subscriptions.get(dependent)?.get(interestKey(interest));
    const stream = subscription?.streamKey === undefined ? undefined : this.#streams.get(subscription.streamKey);
    if (stream === undefined) return { phase: "pending" };
    const version = stream.reflector.get(objectKey(interest.ref.namespace, interest.ref.name));
    return { ...stream.reflector.state, ...(version && { version }) };
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#subscriptions.clear();
    await Promise.all([...this.#streams.values()].map((stream) => stream.reflector.stop()));
    this.#streams.clear();
  }

  async #subscribe(subscription: Subscription): Promise<void> {
    const { dependent, interest } = subscription;
    const rung = await this.#rungFor(interest);
    if (this.#subscriptions.get(dependent)?.get(interestKey(interest)) !== subscription) return;
    const identity = rung.startsWith("shared") ? CONTROLLER : interest.identity;
    const scope = scopeOf(rung, interest.ref);
    const streamKey = [identity, resourceKey(scope.resource), scope.namespace ?? "", scope.name ?? ""].join("|");
    subscription.streamKey = streamKey;
    const stream = this.#streams.get(streamKey) ?? this.#open(streamKey, identity, scope, rung);
    const key = objectKey(interest.ref.namespace, interest.ref.name);
    const subscriptions = stream.subscriptions.get(key) ?? new Set();
    stream.subscriptions.set(key, subscriptions.add(subscription));
    if (stream.reflector.state.phase !== "pending") this.#events.changed(dependent, "resync");
  }

  #unsubscribe(subscription: Subscription): void {
    const { streamKey, interest } = subscription;
    subscription.streamKey = undefined;
    const stream = streamKey === undefined ? undefined : this.#streams.get(streamKey);
    if (streamKey === undefined || stream === undefined) return;
    const key = objectKey(interest.ref.namespace, interest.ref.name);
    stream.subscriptions.get(key)?.delete(subscription);
    if (stream.subscriptions.get(key)?.size === 0) stream.subscriptions.delete(key);
    if (stream.subscriptions.size > 0) return;
    this.#streams.delete(streamKey);
    this.#rungs.delete(groupKey(interest));
    void stream.reflector.stop();
  }

  #open(streamKey: string, identity: Identity, scope: Scope, rung: Rung): Stream {
    const { resource } = scope;
    let wasRefused = false;
    const stream: Stream = {
      resource,
      subscriptions: new Map(),
      reflector: new Reflector<Version>(new ListWatch(this.#transport, identity, scope), {
        keep: versionOf,
        changed: (key) => {
          for (const { dependent } of stream.subscriptions.get(key) ?? []) this.#events.changed(dependent, "change");
        },
        stateChanged: (state) => {
          if (state.phase === "failed" && state.error.status === 403) {
            wasRefused = true;
            // Who may not be impersonated may not be for a single name either.
            if (rung !== "name" && !isImpersonation(state.error, { identity, ref: scope })) {
              this.#narrow(streamKey, rung);
              return;
            }
          } else if (state.phase === "synced" && wasRefused && rung === "name") {
            wasRefused = false;
            void this.#widen(stream);
          }
          for (const each of stream.subscriptions.values()) {
            for (const { dependent } of each) this.#events.changed(dependent, "resync");
          }
        },
        restarted: (reason) => this.#events.restarted(resource, reason),
      }),
    };
    this.#streams.set(streamKey, stream);
    stream.reflector.start();
    return stream;
  }

  /** A right that a review promised, or that was there, is not: everything on this stream goes one rung down. */
  #narrow(streamKey: string, rung: Rung): void {
    for (const subscription of this.#all()) {
      if (subscription.streamKey !== streamKey) continue;
      this.#unsubscribe(subscription);
      const next = rung === "shared" ? "namespace" : "name";
      this.#rungs.set(groupKey(subscription.interest), Promise.resolve(next));
      void this.#subscribe(subscription);
    }
  }

  /** A right is there again: if a wider stream may carry this one's objects now, it takes on all that are like them. */
  async #widen({ subscriptions }: Stream): Promise<void> {
    const [first] = subscriptions.values().next().value ?? [];
    if (first === undefined) return;
    const group = groupKey(first.interest);
    if (this.#widening.has(group)) return;
    this.#widening.add(group);
    const rung = await this.#askForRung(first.interest);
    this.#widening.delete(group);
    if (rung === "name") return;
    const alike = this.#all().filter((each) => each.streamKey !== undefined && groupKey(each.interest) === group);
    for (const each of alike) this.#unsubscribe(each);
    this.#rungs.set(group, Promise.resolve(rung));
    for (const each of alike) void this.#subscribe(each);
  }

  #all(): Subscription[] {
    return [...this.#subscriptions.values()].flatMap((each) => [...each.values()]);
  }

  #rungFor(interest: Interest): Promise<Rung> {
    const key = groupKey(interest);
    let rung = this.#rungs.get(key);
    if (rung === undefined) {
      rung = this.#askForRung(interest);
      this.#rungs.set(key, rung);
    }
    return rung;
  }

  /** Asks until there is an answer: a failed review is no reason to open a stream for every name. */
  async #askForRung(interest: Interest): Promise<Rung> {
    for (;;) {
      try {
        return await this.#reviewRung(interest);
      } catch (error) {
        // One that may not be impersonated gets the narrowest stream, whose own refusal is reported.
        if (isStatus(error, 403) || this.#stopped) return "name";
        await sleep(REVIEW_AGAIN_MS);
      }
    }
  }

  async #reviewRung({ identity, ref }: Interest): Promise<Rung> {
    const { resource, namespace, name } = ref;
    if (identity === CONTROLLER && (await this.#mayEverywhere(resource, name))) return "sharedName";
    if (identity !== CONTROLLER && (await this.#isOptedIn(resource))) return "shared";
    if (await this.#client.may(identity, "watch", resource, namespace)) return "namespace";
    return "name";
  }

  /** Whether the platform opened a kind. Someone who may watch everything, such as an admin, was not asked about any. */
  async #isOptedIn(resource: Resource): Promise<boolean> {
    return (await this.#mayEverywhere(resource)) && !(await this.#mayEverywhere(EVERYTHING));
  }

  #mayEverywhere(resource: Pick<Resource, "group" | "version" | "plural">, name?: string): Promise<boolean> {
    const key = `${resourceKey(resource)}|${name ?? ""}`;
    let known = this.#everywhere.get(key);
    if (known === undefined || known.until < Date.now()) {
      const allowed = this.#client.may(CONTROLLER, "watch", resource, undefined, name);
      known = { allowed, until: Date.now() + EVERYWHERE_LIVES_MS };
      this.#everywhere.set(key, known);
      allowed.catch(() => this.#everywhere.delete(key));
    }
    return known.allowed;
  }
}

function scopeOf(rung: Rung, { resource, namespace, name }: ObjectRef): Scope {
  return {
    resource,
    form: "metadata",
    ...((rung === "namespace" || rung === "name") && namespace !== undefined && { namespace }),
    ...((rung === "sharedName" || rung === "name") && { name }),
  };
}

function versionOf({ metadata }: KubeObject): Version {
  const { uid, resourceVersion, generation } = metadata;
  return { uid, resourceVersion, generation };
}

const resourceKey = (resource: Pick<Resource, "group" | "version" | "plural">) =>
  `${apiVersionOf(resource)}/${resource.plural}`;

const interestKey = ({ identity, ref }: Interest) =>
  [identity, resourceKey(ref.resource), ref.namespace ?? "", ref.name].join("|");

/** What shares one answer to "how wide may the stream be": all names of a kind in a namespace, for one identity. */
const groupKey = ({ identity, ref }: Interest) =>
  [identity, resourceKey(ref.resource), ref.namespace ?? "", identity === CONTROLLER ? ref.name : ""].join("|");
