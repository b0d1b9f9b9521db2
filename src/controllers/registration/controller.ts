/**
 * The leader labels the pods of its own Deployment: `inlay-active`, by which the Service inlay-leader selects the leader, and
 * `inlay-version`. It restores both labels, and sets its own `inlay-active` to false before it releases the lease. It sets the
 * label to false on every other pod.
 */
import type { KubeObject } from "../../apimachinery/objects.ts";
import { PODS } from "../../apimachinery/resources.ts";
import { Reflector } from "../../cache/reflector.ts";
import { isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { CONTROLLER } from "../../kube/identity.ts";
import type { ListWatch, Scope } from "../../kube/list-watch.ts";
import { describeError, type Log } from "../../observability/log.ts";
import { WorkQueue, type WorkResult } from "../../workqueue/work-queue.ts";
import { askVersion } from "./ask-version.ts";
import { ACTIVE, type Labels, labelOf, missingLabels, type Replica, replicaOf, VERSION } from "./replica.ts";

const ALL = "replicas";
const FIELD_MANAGER = "inlay-replicas";
const NAME = "app.kubernetes.io/name";
/** How often the other replicas are asked for their version: an image may change under its tag. */
const EVERY_MS = 10_000;
/** How often to retry while the Role is missing. */
const RETRY_MS = 60_000;
/** The next replica waits for the lease meanwhile. */
const RESIGN_WITHIN_MS = 1_000;
const BACKOFF_MS = { first: 100, most: EVERY_MS };
const DONE: WorkResult = { retry: "never" };

/** This process, as a replica. */
export interface OwnReplica {
  readonly podName: string;
  readonly version: string;
}

export interface RegistrationServices {
  installation: { readonly ownNamespace: string };
  client: Pick<Client, "list" | "mergePatch">;
  listWatch: (scope: Scope) => Pick<ListWatch, "list" | "watch">;
  replica: OwnReplica;
  log: Pick<Log, "debug" | "info">;
}

export class RegistrationController {
  readonly name = "registration";
  readonly queue = new WorkQueue({ concurrency: 1, backoffMs: BACKOFF_MS });
  readonly #services: RegistrationServices;
  readonly #ask: typeof askVersion;
  #pods: Reflector<Replica> | undefined;
  /** The last version of each other replica, by the uid of its pod. */
  readonly #versions = new Map<string, string>();
  #isRefused = false;
  /** The own pod is labelled as active, or is about to be: the watch may be late. */
  #isActive = false;

  constructor(services: RegistrationServices, ask = askVersion) {
    this.#services = services;
    this.#ask = ask;
  }

  start(): void {
    this.queue.add(ALL);
  }

  async stop(): Promise<void> {
    await this.#pods?.stop();
  }

  /** The queue has one key: all replicas. */
  async reconcile(): Promise<WorkResult> {
    try {
      if (this.#pods === undefined) return await this.#begin();
      const own = this.#own;
      return own === undefined ? DONE : await this.#label(own);
    } catch (error) {
      if (isStatus(error, 409)) return { retry: "backoff" };
      if (!isStatus(error, 403)) throw error;
      if (!this.#isRefused)
        this.#services.log.info(
          { namespace: this.#namespace },
          "Inlay may not label the pods of this Deployment; apply the Role inlay-controller",
        );
      this.#isRefused = true;
      return { retry: "after", ms: RETRY_MS };
    }
  }

  /** The next leader labels itself. Until then the Service has no endpoint, rather than one that has stopped. */
  async resign(): Promise<void> {
    const own = this.#own;
    if (own === undefined || !(this.#isActive || own.labels[ACTIVE] === "true")) return;
    // The patch names the uid alone: it is right for every version of the pod.
    const { name, uid } = own;
    const patch = this.#patch(name, { uid, labels: { [ACTIVE]: "false" } });
    const late = new Promise((resolve) => setTimeout(resolve, RESIGN_WITHIN_MS).unref());
    await Promise.race([patch, late]).catch(() => {});
  }

  get #namespace(): string {
    return this.#services.installation.ownNamespace;
  }

  get #own(): Replica | undefined {
    return this.#pods?.get(`${this.#namespace}/${this.#services.replica.podName}`);
  }

  /** Looks for the own pod. A process outside of the cluster has none, and labels nothing. */
  async #begin(): Promise<WorkResult> {
    const { client, log, replica } = this.#services;
    const namespace = this.#namespace;
    let own: KubeObject | undefined;
    for await (const page of client.list(CONTROLLER, PODS, namespace, { fields: `metadata.name=${replica.podName}` }))
      own ??= page[0];
    if (own === undefined) {
      log.debug({ namespace, pod: replica.podName }, "found no pod of this process, so no replica is labelled");
      return DONE;
    }
    const name = own.metadata.labels?.[NAME];
    this.#pods = this.#watch({
      resource: PODS,
      namespace,
      form: "whole",
      ...(name !== undefined && { labels: `${NAME}=${name}` }),
    });
    return DONE;
  }

  #watch(scope: Scope): Reflector<Replica> {
    const look = () => this.queue.add(ALL);
    const pods = new Reflector<Replica>(this.#services.listWatch(scope), {
      keep: replicaOf,
      changed: (_, after, before) => {
        if (after === undefined && before !== undefined) this.#versions.delete(before.uid);
        look();
      },
      stateChanged: look,
    });
    pods.start();
    return pods;
  }

  async #label(own: Replica): Promise<WorkResult> {
    const others = () => [...(this.#pods?.values() ?? [])].filter((each) => this.#isOther(each, own));
    // The other replicas first: the Service never selects two pods.
    await Promise.all(others().map((each) => this.#write(each, this.#wanted(each))));
    this.#isActive = true;
    await this.#write(own, { [ACTIVE]: "true", [VERSION]: labelOf(this.#services.replica.version) });
    await this.#silence(own);
    await Promise.all(others().map((each) => this.#learn(each)));
    await Promise.all(others().map((each) => this.#write(each, this.#wanted(each))));
    return { retry: "after", ms: EVERY_MS };
  }

  #isOther({ uid, group }: Replica, own: Replica): boolean {
    return uid !== own.uid && group === own.group;
  }

  /**
   * The Service selects by labels alone, and a user can create a pod with the labels of a replica. A failure to change such a pod
   * does not keep the replicas from their labels.
   */
  async #silence(own: Replica): Promise<void> {
    const isStranger = (each: Replica) => each.labels[ACTIVE] === "true" && each.group !== own.group;
    const strangers = [...(this.#pods?.values() ?? [])].filter(isStranger);
    const silence = (each: Replica) =>
      this.#write(each, { [ACTIVE]: "false" }).catch((error: unknown) => {
        const [{ log }, pod] = [this.#services, each.name];
        log.debug(
          { pod, error: describeError(error) },
          "a pod that is no replica has the label inlay-active, and it could not be changed; retrying",
        );
      });
    await Promise.all(strangers.map(silence));
  }

  #wanted({ uid }: Replica): Labels {
    return { [ACTIVE]: "false", [VERSION]: this.#versions.get(uid) };
  }

  /** A replica that does not answer keeps the label of its last version. */
  async #learn({ uid, address }: Replica): Promise<void> {
    const version = address && (await this.#ask(address));
    const label = version && labelOf(version);
    if (label) this.#versions.set(uid, label);
  }

  async #write(replica: Replica, wanted: Labels): Promise<void> {
    const labels = missingLabels(replica, wanted);
    if (labels === undefined) return;
    const { name, uid, resourceVersion } = replica;
    await this.#patch(name, { uid, resourceVersion, labels }).catch((error: unknown) => {
      if (!isStatus(error, 404)) throw error;
    });
  }

  async #patch(name: string, metadata: object): Promise<void> {
    const ref = { resource: PODS, namespace: this.#namespace, name };
    await this.#services.client.mergePatch(CONTROLLER, ref, { metadata }, FIELD_MANAGER);
  }
}
