/**
 * The pods of a Vault cluster as its Helm chart creates them. In place of a kubelet, this module gives each pod of the
 * StatefulSet the address of a real server, and Kubernetes' controllers do the rest. The Service has the family IPv6, because
 * EndpointSlices may not contain loopback addresses of IPv4.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { controlPlane } from "../control-plane/shared.ts";
import type { Hosts } from "../control-plane/vault-cluster.ts";
import { type AnyObject, Api, unlessGone } from "./api.ts";
import { eventually } from "./eventually.ts";
import { applyObjects, objectsIn } from "./manifests.ts";

export const FOLDER = join(import.meta.dirname, "..", "..", "compositions", "vault-service-registration");
export const NAMESPACE = "vault";
const ROOT = `/api/v1/namespaces/${NAMESPACE}`;
const SLICES = `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`;
/** The field manager of Vault's own writes, which name none. */
const OLD_TOOL = "Go-http-client";
const LOOKS_EVERY_MS = 50;

interface Options {
  /** Called when a pod of the StatefulSet starts, before it is ready. */
  onStart?: (index: number, image: string) => Promise<void>;
}

export class VaultPods {
  readonly api = new Api(controlPlane());
  readonly #hosts: Hosts;
  readonly #onStart: NonNullable<Options["onStart"]>;
  /** The uid of each running pod, by name. */
  readonly #started = new Map<string, string>();
  readonly #stop = new AbortController();
  #kubelet: Promise<void> = Promise.resolve();

  constructor(hosts: Hosts, { onStart = async () => {} }: Options = {}) {
    this.#hosts = hosts;
    this.#onStart = onStart;
  }

  /** Applies the objects of the Helm chart, and starts the pods. */
  async start(): Promise<void> {
    await applyObjects(this.api, (await objectsIn(join(FOLDER, "sample", "vault.yaml"))).map(onThisControlPlane));
    this.#kubelet = this.#run();
    await eventually(async () => {
      const phases = (await this.pods()).map(({ status }) => status.phase);
      assert.deepEqual(phases, ["Running", "Running", "Running"]);
    });
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#kubelet;
    await this.api.remove(`/api/v1/namespaces/${NAMESPACE}`);
    await eventually(async () => assert.equal(await this.api.find(`/api/v1/namespaces/${NAMESPACE}`), undefined));
  }

  async pods(): Promise<AnyObject[]> {
    const { items } = await this.api.get(`${ROOT}/pods`);
    return items.toSorted((a: AnyObject, b: AnyObject) => (a.metadata.name < b.metadata.name ? -1 : 1));
  }

  /** The values of a label of the pods, in the order of the pods. */
  async labels(label: string): Promise<(string | undefined)[]> {
    return (await this.pods()).map(({ metadata }) => metadata.labels[label]);
  }

  /** The pods behind a Service, by the EndpointSlices that Kubernetes creates. */
  async behind(service = "vault-active"): Promise<string[]> {
    const { items } = await this.api.get(`${SLICES}?labelSelector=kubernetes.io/service-name=${service}`);
    const endpoints: AnyObject[] = items.flatMap(({ endpoints }: AnyObject) => endpoints ?? []);
    return endpoints.map(({ targetRef }) => targetRef.name).sort();
  }

  /** Sets labels as Vault's own registration does. */
  async label(name: string, labels: object): Promise<void> {
    await this.api.merge(`${ROOT}/pods/${name}`, { metadata: { labels } }, OLD_TOOL);
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      for (const pod of await this.pods()) {
        const { name, uid } = pod.metadata;
        if (this.#started.get(name) === uid) continue;
        this.#started.set(name, uid);
        await this.#begin(pod);
      }
      await sleep(LOOKS_EVERY_MS);
    }
  }

  async #begin({ metadata, spec }: AnyObject): Promise<void> {
    const index = Number(metadata.name.split("-").at(-1));
    await this.#onStart(index, spec.containers[0].image);
    const podIP = this.#hosts[index];
    const ready = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];
    const status = {
      phase: "Running",
      podIP,
      podIPs: [{ ip: podIP }, { ip: `fd00::1${index}` }],
      conditions: ready.map((type) => ({ type, status: "True" })),
    };
    await this.api.merge(`${ROOT}/pods/${metadata.name}/status`, { status }, "kubelet").catch(unlessGone);
  }
}

/** Adapts an object: the test schedules its pods, and its Services have the family IPv6. */
function onThisControlPlane(object: AnyObject): AnyObject {
  if (object.kind === "StatefulSet") object.spec.template.spec.schedulerName = "test";
  if (object.kind === "Service") Object.assign(object.spec, { ipFamilyPolicy: "SingleStack", ipFamilies: ["IPv6"] });
  return object;
}
