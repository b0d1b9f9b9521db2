/**
 * The leader labels the pods of its own Deployment: `inlay-active`, by which the Service inlay-leader selects the leader, and
 * `inlay-version`. It restores both labels, and sets its own `inlay-active` to false before it releases the lease. It sets the
 * label to false on every other pod.
 */
import { isIPv6 } from "node:net";
import { at, fieldsAt, listAt } from "../../apimachinery/fields.ts";
import { isObject, parseJson } from "../../apimachinery/json.ts";
import type { KubeObject } from "../../apimachinery/objects.ts";
import { PODS } from "../../apimachinery/resources.ts";
import { Reflector } from "../../cache/reflector.ts";
import { isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { CONTROLLER } from "../../kube/identity.ts";
import type { ListWatch, Scope } from "../../kube/list-watch.ts";
import { describeError, type Log } from "../../observability/log.ts";
import { DONE, WorkQueue, type WorkResult } from "../../workqueue/work-queue.ts";

const ACTIVE = "inlay-active";
const VERSION = "inlay-version";
const HASH = "pod-template-hash";
const LABEL_VALUE = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

interface Replica {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** The same for all pods of a Deployment, whatever their ReplicaSet. */
  readonly group: string;
  readonly labels: Readonly<Labels>;
  /** Where to ask for its version; undefined while it does not run, or if no port has the name `health`. */
  readonly address: { host: string; port: number } | undefined;
}

interface Labels {
  [ACTIVE]?: string | undefined;
  [VERSION]?: string | undefined;
}

export function replicaOf(pod: KubeObject): Replica {
  const { name, uid, resourceVersion, labels = {} } = pod.metadata;
  const ports = listAt(pod["spec"], "containers").flatMap((each) => listAt(each, "ports"));
  const health = ports.find((each) => at(each, "name") === "health");
  const port = at(health, "containerPort");
  const { phase, podIP: host } = fieldsAt(pod["status"]);
  const isReachable = phase === "Running" && typeof host === "string" && host !== "" && typeof port === "number";
  return {
    name,
    uid,
    resourceVersion,
    group: groupOf(pod),
    labels: { [ACTIVE]: labels[ACTIVE], [VERSION]: labels[VERSION] },
    address: isReachable ? { host, port } : undefined,
  };
}

/**
 * The name of a ReplicaSet is that of its Deployment and the hash in the labels of its pods. Every other pod is a group of its
 * own.
 */
function groupOf({ metadata }: KubeObject): string {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  const suffix = `-${metadata.labels?.[HASH]}`;
  const isOfDeployment = owner?.kind === "ReplicaSet" && owner.name?.endsWith(suffix) === true;
  return isOfDeployment ? `Deployment ${owner.name?.slice(0, -suffix.length)}` : `Pod ${metadata.uid}`;
}

/** A version as the value of a label; undefined if it can't be one. */
function labelOf(version: string): string | undefined {
  const label = version.replaceAll("+", "-");
  return LABEL_VALUE.test(label) ? label : undefined;
}

/** The labels that are missing or wrong; undefined if there are none. A label that is wanted as undefined is not changed. */
function missingLabels({ labels }: Replica, wanted: Labels): Record<string, string> | undefined {
  const missing = ([ACTIVE, VERSION] as const).flatMap((key) => {
    const value = wanted[key];
    return value === undefined || value === labels[key] ? [] : [[key, value] as const];
  });
  return missing.length === 0 ? undefined : Object.fromEntries(missing);
}

/** As in observability/http-server.ts. */
const { request } = process.getBuiltinModule("node:http");
const DEADLINE_MS = 2_000;
const MAX_LENGTH = 1_000;

/** Undefined if the replica does not answer, or reports no version. */
async function askVersion({ host, port }: { host: string; port: number }): Promise<string | undefined> {
  const url = `http://${isIPv6(host) ? `[${host}]` : host}:${port}/version`;
  try {
    const version = parseJson(await get(url));
    const text = isObject(version) ? version["version"] : undefined;
    return typeof text === "string" ? text : undefined;
  } catch {
    return undefined;
  }
}

function get(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    // The connection is not kept: it is used once in ten seconds.
    const asked = request(url, { agent: false, signal: AbortSignal.timeout(DEADLINE_MS) }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
        if (text.length > MAX_LENGTH) response.destroy(new Error("too long"));
      });
      response.once("error", reject);
      response.once("end", () => (response.statusCode === 200 ? resolve(text) : reject(new Error("no version"))));
    });
    asked.once("error", reject).end();
  });
}

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

/** This process, as a replica. */
export interface OwnReplica {
  readonly podName: string;
  readonly version: string;
}

interface RegistrationServices {
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
