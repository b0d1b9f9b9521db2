/**
 * Makes, corrects and deletes the bindings that a controller generates in a namespace, such as those for Reloader's annotations,
 * and says when to look again. A binding that is as it has to be costs no request.
 */
import { bindingKey, type SecretBinding } from "../api/binding.ts";
import { sameJson } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import { SECRET_BINDINGS } from "../apimachinery/resources.ts";
import { refusal } from "../kube/access-error.ts";
import { isStatus } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import type { Identity } from "../kube/identity.ts";
import type { EventRecorder } from "../observability/events.ts";
import type { Log } from "../observability/log.ts";
import type { ContentionBudget } from "../targets/contention-budget.ts";
import { mapConcurrent } from "../workqueue/map-concurrent.ts";
import type { WorkResult } from "../workqueue/work-queue.ts";

/** The object that a binding is generated for. */
export interface Owner {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
}

/** A binding as it has to be. */
export interface GeneratedBinding {
  name: string;
  owner: Owner;
  spec: SecretBinding["spec"];
}

type Metadata = SecretBinding["metadata"];

/** What is particular to the controller that generates bindings. */
export interface Generator<G extends GeneratedBinding> {
  /** As whom they are written. */
  identity: Identity;
  fieldManager: string;
  /** The objects that they are generated for belong to the cluster. */
  hasClusterOwners?: true;
  /** What they are made of, for messages, such as `Reloader's annotations`. */
  origin: string;
  /** Whether a binding says that it was generated. It need not be true. */
  claims(binding: SecretBinding): boolean;
  /** Whether it is someone else's, although it has the name of a generated one. */
  isOthers(binding: SecretBinding): boolean;
  /** Whether the binding is `desired`, or has one of the specs that the API server keeps in place of it. */
  matches(binding: SecretBinding, desired: G, kept: G["spec"][]): boolean;
  /** Whether it was generated for a former object of that name. */
  isFormer(binding: SecretBinding, desired: G): boolean;
  /** The metadata as it has to be, beside what others say there. */
  metadataOf(desired: G, present?: Partial<Metadata>): Partial<Metadata>;
  /** What a binding that could not be written means to its owner. */
  consequence: string;
}

export interface GeneratedBindingServices {
  client: Pick<Client, "make" | "replace" | "delete">;
  contention: Pick<ContentionBudget, "mayWrite" | "wrote">;
  events: Pick<EventRecorder, "recordOn">;
  log: Pick<Log, "warn">;
}

const BACKOFF: WorkResult = { retry: "backoff" };
const DONE: WorkResult = { retry: "never" };

export class GeneratedBindings<G extends GeneratedBinding> {
  readonly #services: GeneratedBindingServices;
  readonly #generator: Generator<G>;
  readonly #unchanged: (key: string) => void;
  /** By the uid of a binding that we wrote, and that the API server keeps otherwise: what was written, and what became of it. */
  readonly #kept = new Map<string, { written: G["spec"]; kept: G["spec"][] }>();
  /** By namespace, what was said of each binding that could not be made. */
  readonly #failures = new Map<string, Map<string, string>>();

  /** `unchanged` is called with the key of a binding that was written and that no watch may show as changed. */
  constructor(services: GeneratedBindingServices, generator: Generator<G>, unchanged: (key: string) => void) {
    this.#services = services;
    this.#generator = generator;
    this.#unchanged = unchanged;
  }

  /** Another version's CRD has other defaults, and a webhook may have its own: what became of our own write counts too. */
  isAsGenerated(binding: SecretBinding, desired: G): boolean {
    const { written, kept = [] } = this.#kept.get(binding.metadata.uid) ?? {};
    return this.#generator.matches(binding, desired, sameJson(written, desired.spec) ? kept : []);
  }

  gone({ metadata }: SecretBinding): void {
    this.#kept.delete(metadata.uid);
  }

  /** `present` are all bindings of the namespace, by their names. Owners of `unseen` kinds may exist although none is desired. */
  async sync(
    namespace: string,
    desired: ReadonlyMap<string, G>,
    present: ReadonlyMap<string, SecretBinding>,
    unseen: readonly string[],
  ): Promise<WorkResult> {
    const isUnseen = ({ metadata }: SecretBinding) =>
      metadata.ownerReferences?.some(({ kind = "" }) => unseen.includes(kind)) === true;
    const obsolete = [...present.values()].filter(
      (each) => this.#generator.claims(each) && !desired.has(each.metadata.name) && !isUnseen(each),
    );
    const failures = new Map<string, string>();
    // Where a quota is used up, only deletions make room. One that fails keeps nothing else back.
    const [deleted] = await Promise.allSettled([mapConcurrent(obsolete, (each) => this.#delete(each))]);
    const [written] = await Promise.allSettled([
      mapConcurrent([...desired.values()], (each) => this.#correct(namespace, each, present.get(each.name), failures)),
    ]);
    this.forget(namespace);
    if (failures.size > 0) this.#failures.set(namespace, failures);
    if (deleted.status === "rejected") throw deleted.reason;
    if (written.status === "rejected") throw written.reason;
    return soonest([...deleted.value, ...written.value]);
  }

  forget(namespace: string): void {
    this.#failures.delete(namespace);
  }

  async #correct(
    namespace: string,
    desired: G,
    present: SecretBinding | undefined,
    failures: Map<string, string>,
  ): Promise<WorkResult> {
    const { client, contention } = this.#services;
    const { identity, fieldManager, isOthers, isFormer, metadataOf } = this.#generator;
    const { spec } = desired;
    const ref = { resource: SECRET_BINDINGS, namespace, name: desired.name };
    if (present === undefined) {
      const object = { metadata: metadataOf(desired), spec };
      try {
        return await written(client.make(identity, ref, object as object as JsonObject, fieldManager));
      } catch (error) {
        const problem = refusal(error, { identity, ref, verbs: ["create"] }, "create");
        if (problem.reason !== "Unavailable") this.#report(namespace, desired, problem, failures);
        throw problem;
      }
    }
    if (this.isAsGenerated(present, desired) || isOthers(present) || isGoing(present)) return DONE;
    // What it wrote with another spec is released by that spec's account; and another owner has a baseline of its own.
    if ((present.status?.targets ?? []).length > 0 || isFormer(present, desired)) return this.#delete(present);
    const contender = `generated/${present.metadata.uid}`;
    const revision = JSON.stringify(spec);
    const wait = contention.mayWrite(contender, revision, []);
    if (wait > 0) return { retry: "after", ms: wait };
    const metadata = { ...present.metadata, ...metadataOf(desired, present.metadata) };
    return written(
      client.replace(identity, ref, { ...present, metadata, spec }, fieldManager).then((now) => {
        contention.wrote(contender, revision);
        this.#keep(present, now, desired);
      }),
    );
  }

  #keep(before: SecretBinding, now: SecretBinding, desired: G): void {
    const { uid, resourceVersion } = now.metadata;
    // While one CRD replaces another, watches may show the same version with the former one's defaults.
    const same = before.metadata.resourceVersion === resourceVersion ? [before.spec] : [];
    const kept = [now.spec, ...same].filter((spec) => !sameJson(spec, desired.spec));
    if (kept.length === 0) this.#kept.delete(uid);
    else this.#kept.set(uid, { written: desired.spec, kept });
    const binding = bindingKey(now);
    const what = `is not kept as it was made of ${this.#generator.origin}, and does nothing; a webhook may change it`;
    // If the write changed nothing, no watch shows it.
    if (this.isAsGenerated(now, desired)) this.#unchanged(binding);
    else this.#services.log.warn({ binding }, what);
  }

  /** Once for each binding that can't be made. */
  #report(namespace: string, { name: binding, owner }: G, { message }: Problem, failures: Map<string, string>): void {
    const { name, uid } = owner;
    const note = `binding ${binding} could not be made, ${this.#generator.consequence}: ${message}`;
    if (this.#failures.get(namespace)?.get(binding) !== note)
      this.#services.events.recordOn(
        { ...owner, metadata: { name, uid, ...(!this.#generator.hasClusterOwners && { namespace }) } },
        { type: "Warning", reason: "BindingNotMade", action: "Generate", note },
      );
    failures.set(binding, note);
  }

  async #delete(binding: SecretBinding): Promise<WorkResult> {
    if (isGoing(binding)) return DONE;
    const { namespace = "", name } = binding.metadata;
    const ref = { resource: SECRET_BINDINGS, namespace, name };
    return written(this.#services.client.delete(this.#generator.identity, ref, binding));
  }
}

const isGoing = ({ metadata }: SecretBinding) => metadata.deletionTimestamp !== undefined;

/** Requeues where the binding has changed since it was read. */
async function written(write: Promise<unknown>): Promise<WorkResult> {
  try {
    await write;
    return DONE;
  } catch (error) {
    if (isStatus(error, 404) || isStatus(error, 409)) return BACKOFF;
    throw error;
  }
}

function soonest(results: readonly WorkResult[]): WorkResult {
  if (results.some(({ retry }) => retry === "backoff")) return BACKOFF;
  const waits = results.flatMap((each) => (each.retry === "after" ? [each.ms] : []));
  return waits.length === 0 ? DONE : { retry: "after", ms: Math.min(...waits) };
}
