/**
 * Shows that the replicas of Inlay have labels like Vault servers: a Service follows the leader, and each pod shows its version.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { freePorts } from "../control-plane/ports.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { loopbackHosts } from "../control-plane/vault-cluster.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { applyObjects, deleteObjects, objectsIn } from "../controller/manifests.ts";
import { CONTROLLER } from "../controller/requests.ts";
import { stopSharedController } from "../controller/shared.ts";

const root = join(import.meta.dirname, "..", "..");
const manifests = join(root, "deploy", "manifests");
const ROOT = "/api/v1/namespaces/inlay-system";
const NAME = "replicas";
const SLICES = "/apis/discovery.k8s.io/v1/namespaces/inlay-system/endpointslices";

describe("the replicas of Inlay", function () {
  this.timeout("2m");
  const hosts = loopbackHosts();
  let api: Api;
  let version: string;
  /**
   * The shipped objects, with pods at addresses of this machine, and a Service of the IP family that allows them as endpoints.
   */
  let installed: AnyObject[];
  let names: string[];
  let replicas: ControllerProcess[];

  before(async () => {
    api = new Api(controlPlane());
    version = JSON.parse(await readFile(join(root, "package.json"), "utf8")).version;
    await stopSharedController();
    const [port = 0] = await freePorts(1);
    installed = [await deploymentOf(port), await serviceOfIpv6()];
    await deleteObjects(api, installed.slice(1));
    await applyObjects(api, installed);
    const pods = await eventually(async () => {
      const { items } = await api.get(`${ROOT}/pods?labelSelector=app=${NAME}`);
      assert.deepEqual(
        items.map(({ status }: AnyObject) => status.phase),
        ["Running", "Running"],
      );
      return items as AnyObject[];
    });
    names = pods.map(({ metadata }) => metadata.name).sort();
    await Promise.all(names.map(move));
    // The second replica serves its version at the address of its pod.
    replicas = await startReplicas(
      ["--pod-name", names[0] ?? ""],
      ["--pod-name", names[1] ?? "", "--health-port", `${port}`],
    );
  });
  after(async () => {
    await Promise.all(replicas.map((each) => each.stop()));
    await deleteObjects(api, installed.slice(0, 1));
  });

  async function deploymentOf(port: number): Promise<AnyObject> {
    const all = await objectsIn(join(manifests, "40-controller.yaml"));
    const deployment = all.find(({ kind }) => kind === "Deployment");
    const { template, selector } = deployment.spec;
    deployment.metadata.name = NAME;
    for (const labels of [template.metadata.labels, selector.matchLabels]) labels.app = NAME;
    template.spec.containers[0].ports = [
      { name: "health", containerPort: port },
      { name: "metrics", containerPort: 8443 },
    ];
    return deployment;
  }

  async function serviceOfIpv6(): Promise<AnyObject> {
    const [service] = await objectsIn(join(manifests, "55-leader.yaml"));
    Object.assign(service.spec, { ipFamilyPolicy: "SingleStack", ipFamilies: ["IPv6"] });
    return service;
  }

  const move = (name: string, index: number) =>
    api.merge(`${ROOT}/pods/${name}/status`, {
      status: { podIP: hosts[index], podIPs: [{ ip: hosts[index] }, { ip: `fd00::2${index}` }] },
    });

  /** Starts the replicas one after the other, so that the first one leads. */
  async function startReplicas(...all: string[][]): Promise<ControllerProcess[]> {
    const started: ControllerProcess[] = [];
    for (const args of all) {
      const replica = new ControllerProcess(controlPlane(), "--leader-elect", ...args);
      started.push(replica);
      await replica.start();
      if (started.length === 1) await eventually(() => assert.match(replica.output, /"msg":"leading"/));
    }
    return started;
  }

  const labelled = (label: string, expected: string[], withinMs?: number) =>
    eventually(async () => {
      const pods = await Promise.all(names.map((name) => api.get(`${ROOT}/pods/${name}`)));
      assert.deepEqual(
        pods.map(({ metadata }) => metadata.labels[label]),
        expected,
      );
    }, withinMs);
  const leads = (name: string | undefined) =>
    eventually(async () => {
      const { items } = await api.get(`${SLICES}?labelSelector=kubernetes.io/service-name=inlay-leader`);
      const endpoints = items.flatMap(({ endpoints }: AnyObject) => endpoints ?? []);
      assert.deepEqual(
        endpoints.map(({ targetRef }: AnyObject) => targetRef.name),
        [name],
      );
    });

  it("have labels that show the leader, and the version that each of them reports", async () => {
    await labelled("inlay-active", ["true", "false"]);
    await leads(names[0]);
    await labelled("inlay-version", [version, version]);
    const others = await api.get(`${ROOT}/pods?labelSelector=app.kubernetes.io/name=inlay,app!=${NAME}`);
    assert.deepEqual(
      others.items.filter(({ metadata }: AnyObject) => "inlay-active" in metadata.labels),
      [],
    );
  });

  it("regain labels that others remove", async () => {
    const labels = { "inlay-active": "true", "inlay-version": null };
    await api.merge(`${ROOT}/pods/${names[1]}`, { metadata: { labels } });
    await labelled("inlay-active", ["true", "false"]);
    await labelled("inlay-version", [version, version]);
  });

  it("have a policy by which the controller changes only these labels of pods", async () => {
    const dryRun = api.as(CONTROLLER).dryRun;
    const patch = (change: object) => dryRun.merge(`${ROOT}/pods/${names[1]}`, change);
    await patch({ metadata: { labels: { "inlay-active": "true", "inlay-version": null } } });
    for (const change of [
      { spec: { activeDeadlineSeconds: 1 } },
      { metadata: { labels: { "app.kubernetes.io/name": "other" } } },
      { metadata: { labels: { other: "new" } } },
      { metadata: { labels: { app: null } } },
      { metadata: { annotations: { other: "new" } } },
      { metadata: { finalizers: ["example.com/held"] } },
      { metadata: { ownerReferences: [] } },
    ])
      await assert.rejects(patch(change), /labels inlay-active and inlay-version/);
    await api.dryRun.merge(`${ROOT}/pods/${names[1]}`, { metadata: { labels: { other: "new" } } });
  });

  it("move the Service when the leader stops, and keep the version label of its pod", async () => {
    assert.equal(await replicas[0]?.stop(), 0);
    assert.match(replicas[0]?.output ?? "", /"msg":"released the lease"/);
    await labelled("inlay-active", ["false", "true"]);
    await leads(names[1]);
    await labelled("inlay-version", [version, version]);
  });

  it("remove the active label when the leader stops, also without a successor", async () => {
    assert.equal(await replicas[1]?.stop(), 0);
    await labelled("inlay-active", ["false", "false"]);
  });
});
