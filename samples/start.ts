/**
 * `npm start`: tells the story of samples/harbor on a real control plane of its own, as it happens. Nothing comes in;
 * the story goes out on stdout, with every value masked, and the cluster stays up until Ctrl-C.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type ControlPlane, startControlPlane } from "../test/control-plane/control-plane.ts";
import { install } from "../test/control-plane/install.ts";
import { type AnyObject, Api } from "../test/controller/api.ts";

const root = join(import.meta.dirname, "..");
const sample = join(root, "samples", "harbor");
const NAMESPACE = "registry";
const SECRET = `/api/v1/namespaces/${NAMESPACE}/secrets/bucket`;
const HARBORS = `/apis/goharbor.io/v1beta1/namespaces/${NAMESPACE}/harborclusters`;
const ROTATIONS = 5;
const PATIENCE_SECONDS = 60;

const began = performance.now();
const colours = process.stdout.isTTY;
const dim = (text: string) => (colours ? `\x1b[2m${text}\x1b[0m` : text);
const bold = (text: string) => (colours ? `\x1b[1m${text}\x1b[0m` : text);
const say = (...lines: string[]) => console.log(lines.join("\n"));
const chapter = (title: string, file?: string) => say("", bold(title) + (file ? dim(`  ${file}`) : ""));

/** A value is never printed: only that there is one, and whether it is the right one. */
const masked = (value: string | undefined) => (value === undefined ? "(not there)" : "••••••••");
const compared = (value: string | undefined, right: string, name: string) =>
  `${masked(value)}  ${value === right ? "✔ is" : "is not"} ${name}`;

// A control plane alone does not keep its parent alive; this does, until stop() ends the process.
setInterval(() => {}, 2 ** 30);
let controlPlane: ControlPlane | undefined;
let stopping = false;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => void stop());

try {
  controlPlane = await startControlPlane();
  await tell(controlPlane);
} catch (error) {
  if (!stopping) {
    console.error(`\n${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
  await stop();
}

async function tell(cluster: ControlPlane): Promise<void> {
  const api = new Api(cluster);
  say(bold("Inlay, on a control plane of its own"), "");
  passed("etcd, kube-apiserver, controller-manager, scheduler and KWOK are up");
  await install(cluster);
  await startController(cluster);
  passed("CRD, policies and roles are installed, and the controller runs with those rights");

  await cluster.kubectl("apply", `--filename=${join(sample, "crd")}`);
  await cluster.kubectl("wait", "--for=condition=established", "crd/harborclusters.goharbor.io");
  for (const file of ["00-namespace", "01-account", "02-secret", "03-harborcluster"]) await apply(cluster, file);

  chapter("1. A Secret, as a bucket's provisioner leaves it", "samples/harbor/02-secret.yaml");
  const { data } = await api.get(SECRET);
  for (const [key, value] of Object.entries<string>(data)) row(key, masked(decoded(value)));

  chapter("2. A HarborCluster: these two fields can only be written inline", "samples/harbor/03-harborcluster.yaml");
  const before = s3Of(await api.get(`${HARBORS}/harbor`));
  row("accesskey", masked(before.accesskey));
  row("regionendpoint", masked(before.regionendpoint));

  chapter("3. A SecretBinding says what belongs where", "samples/harbor/04-binding.yaml");
  say(dim(indented(await readFile(join(sample, "04-binding.yaml"), "utf8"))));
  const [written] = await Promise.all([
    untilHarbor(api, (s3) => s3.accesskey === decoded(data.accessKeyID)),
    apply(cluster, "04-binding"),
  ]);
  const { accesskey, regionendpoint } = s3Of(written);
  const [key, host, port] = [data.accessKeyID, data.host, data.port].map(decoded);
  row("accesskey", compared(accesskey, key as string, "bucket's accessKeyID"));
  row("regionendpoint", compared(regionendpoint, `https://${host}:${port}`, "bucket's host and port"));
  await cluster.kubectl("wait", "--for=condition=Ready", "secretbinding/harbor-s3", `--namespace=${NAMESPACE}`);
  const { stdout } = await cluster.kubectl("get", "secretbindings", `--namespace=${NAMESPACE}`);
  say("", dim("  $ kubectl get secretbindings -n registry"), indented(stdout));

  chapter("4. The access key is rotated in the Secret");
  const times: number[] = [];
  let first = "";
  for (let round = 1; round <= ROTATIONS; round++) {
    times.push(await rotate(api, round));
    first ||= seconds();
  }
  const rotated = decoded((await api.get(SECRET)).data.accessKeyID);
  row("accesskey", compared(s3Of(await api.get(`${HARBORS}/harbor`)).accesskey, rotated, "bucket's new accessKeyID"));
  const listed = times.map((ms) => ms.toFixed(0)).join(", ");
  say(`  It stood in the HarborCluster ${listed} ms after the Secret was patched, in ${ROTATIONS} rotations;`);
  say(`  the first of them ${first} s after the start.`);

  const kubectl = cluster.kubectlProgram;
  say(
    "",
    bold("It is all yours until Ctrl-C. In another terminal:"),
    `  export KUBECONFIG=${cluster.kubeconfigFile}`,
    ...(kubectl.includes("/") ? [`  alias kubectl=${kubectl}`] : []),
    "  kubectl describe secretbinding harbor-s3 -n registry",
    `  kubectl patch secret bucket -n registry --type merge -p '{"stringData": {"accessKeyID": "AKIAEXAMPLENOTAKEY02"}}'`,
    "  kubectl get harborcluster harbor -n registry -o jsonpath='{.spec.storage.spec.s3.accesskey}'",
    dim(`The controller's log: ${join(cluster.folder, "inlay.log")}`),
  );
}

/** Runs the controller as one would in a cluster: as its own account, with the rights of deploy/manifests and no more. */
async function startController(cluster: ControlPlane): Promise<void> {
  const kubeconfig = await cluster.kubeconfigForServiceAccount("inlay-system", "inlay-controller");
  const log = join(cluster.folder, "inlay.log");
  await cluster.run({
    name: "inlay",
    file: process.execPath,
    args: [join(root, "src", "main.ts"), "controller", "--kubeconfig", kubeconfig],
    isReady: async () => (await readFile(log, "utf8")).includes("controller started"),
  });
}

async function apply(cluster: ControlPlane, file: string): Promise<void> {
  await cluster.kubectl("apply", `--filename=${join(sample, `${file}.yaml`)}`);
}

/** Milliseconds from the Secret's change being sent to the HarborCluster that holds the new value being seen. */
async function rotate(api: Api, round: number): Promise<number> {
  const next = `AKIAEXAMPLEROTATED0${round}`;
  const from = performance.now();
  await Promise.all([
    untilHarbor(api, (s3) => s3.accesskey === next),
    api.merge(SECRET, { stringData: { accessKeyID: next } }),
  ]);
  return performance.now() - from;
}

/** The HarborCluster as soon as it is so. */
async function untilHarbor(api: Api, holds: (s3: AnyObject) => boolean): Promise<AnyObject> {
  for await (const { object } of api.watch(HARBORS, PATIENCE_SECONDS)) if (holds(s3Of(object))) return object;
  throw new Error("the HarborCluster does not hold the value: kubectl describe secretbinding harbor-s3 -n registry");
}

function s3Of(harbor: AnyObject): AnyObject {
  return harbor.spec.storage.spec.s3;
}

function row(name: string, text: string): void {
  say(`  ${name.padEnd(17)} ${text}`);
}

function passed(what: string): void {
  say(`  ✔ ${what}  ${dim(`${seconds()} s`)}`);
}

function seconds(): string {
  return ((performance.now() - began) / 1000).toFixed(1);
}

function decoded(base64: string): string {
  return Buffer.from(base64, "base64").toString("utf8");
}

function indented(text: string): string {
  return text.trimEnd().replaceAll(/^/gm, "  ");
}

/** Stops everything in its order, and leaves nothing; a second Ctrl-C changes nothing. */
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  if (controlPlane !== undefined) say("", "Stopping: the controller first, etcd last.");
  await controlPlane?.stop();
  process.exit();
}
