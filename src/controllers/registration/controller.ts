/**
 * The leader labels the pods of its own Deployment: `inlay-active`, by which the Service inlay-leader selects it, and `inlay-version`. It
 * puts them back, and takes the first away from itself before it gives the lease away. No other pod keeps it either.
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
/** How often the others are asked for their version: an image may change under its tag. */
const EVERY_MS = 10_000;
/** How often a Role is looked for that is not there. */
const LOOK_AGAIN_MS = 60_000;
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
  /** What others said last, by the uid of their pod. */
  readonly #versions = new Map<string, string>();
  #isRefused = false;
  /** Its pod says so, or is about to: the watch may be late. */
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

  /** There is one key: all replicas. */
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
          "may not label the pods of its replicas; the Role inlay-controller lets it",
        );
      this.#isRefused = true;
      return { retry: "after", ms: LOOK_AGAIN_MS };
    }
  }

  /** The next leader labels itself. Until then, the Service leads nowhere and not to one that has stopped. */
  async resign(): Promise<void> {
    const own = this.#own;
    if (own === undefined || !(this.#isActive || own.labels[ACTIVE] === "true")) return;
    // By the uid alone: it is true whichever version of the pod it meets.
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

  /** Looks for its own pod. There is none for a process outside of the cluster, which has nothing to label. */
  async #begin(): Promise<WorkResult> {
    const { client, log, replica } = this.#services;
    const namespace = this.#namespace;
    let own: KubeObject | undefined;
    for await (const page of client.list(CONTROLLER, PODS, namespace, { fields: `metadata.name=${replica.podName}` }))
      own ??= page[0];
    if (own === undefined) {
      log.debug({ namespace, pod: replica.podName }, "has no pod here, so it labels none");
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
    // The others first: the Service never leads to two.
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
   * The Service selects by labels alone, and a user may make a pod with those of a replica. What keeps the label from being changed there
   * keeps no replica from its labels.
   */
  async #silence(own: Replica): Promise<void> {
    const isStranger = (each: Replica) => each.labels[ACTIVE] === "true" && each.group !== own.group;
    const strangers = [...(this.#pods?.values() ?? [])].filter(isStranger);
    const silence = (each: Replica) =>
      this.#write(each, { [ACTIVE]: "false" }).catch((error: unknown) => {
        const [{ log }, pod] = [this.#services, each.name];
        log.debug(
          { pod, error: describeError(error) },
          "is no replica and keeps the label inlay-active; tried again later",
        );
      });
    await Promise.all(strangers.map(silence));
  }

  #wanted({ uid }: Replica): Labels {
    return { [ACTIVE]: "false", [VERSION]: this.#versions.get(uid) };
  }

  /** One that does not answer keeps the version that it had. */
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
