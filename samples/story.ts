/** Shared parts of the examples that `npm start` shows: they print steps with masked values, start the controller, and read what it wrote. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ControlPlane } from "../test/control-plane/control-plane.ts";
import type { AnyObject, Api } from "../test/controller/api.ts";

const root = join(import.meta.dirname, "..");
const PATIENCE_SECONDS = 60;

/** The functions that start.ts provides to an example. */
export interface Stage {
  startControlPlane(): Promise<ControlPlane>;
  /** Registers a function that runs at the end, after the control plane has stopped. */
  onStop(stop: () => Promise<void>): void;
}

/** A sample whose files an example applies. */
export interface Sample {
  folder: string;
  namespace: string;
  binding: string;
}

const began = performance.now();
const colours = process.stdout.isTTY;
export const dim = (text: string): string => (colours ? `\x1b[2m${text}\x1b[0m` : text);
export const bold = (text: string): string => (colours ? `\x1b[1m${text}\x1b[0m` : text);
export const say = (...lines: string[]): void => console.log(lines.join("\n"));
export const chapter = (title: string, file?: string): void => say("", bold(title) + (file ? dim(`  ${file}`) : ""));

/** Replaces a value by dots, because no value may be printed. */
export const masked = (value: string | undefined): string => (value === undefined ? "(not set)" : "••••••••");
/** Masks a value, and says whether it equals the expected value, which has the name `name`. */
export const compared = (value: string | undefined, expected: string, name: string): string =>
  `${masked(value)}  ${value === expected ? "✔ equals" : "differs from"} ${name}`;

export function row(name: string, text: string): void {
  say(`  ${name.padEnd(17)} ${text}`);
}

export function passed(what: string): void {
  say(`  ✔ ${what}  ${dim(`${seconds()} s`)}`);
}

/** Seconds since the start. */
export function seconds(): string {
  return ((performance.now() - began) / 1000).toFixed(1);
}

export function decoded(base64: string): string {
  return Buffer.from(base64, "base64").toString("utf8");
}

export function indented(text: string): string {
  return text.trimEnd().replaceAll(/^/gm, "  ");
}

/** Applies files of a sample, without `.yaml`. */
export async function apply(cluster: ControlPlane, { folder }: Sample, ...files: string[]): Promise<void> {
  for (const file of files)
    await cluster.kubectl("apply", `--filename=${join(root, "samples", folder, `${file}.yaml`)}`);
}

export async function applyHarborKind(cluster: ControlPlane): Promise<void> {
  await cluster.kubectl("apply", `--filename=${join(root, "samples", "harbor", "crd")}`);
  await cluster.kubectl("wait", "--for=condition=established", "crd/harborclusters.goharbor.io");
}

export async function showFile({ folder }: Sample, file: string): Promise<void> {
  say(dim(indented(await readFile(join(root, "samples", folder, `${file}.yaml`), "utf8"))));
}

/** Prints what `kubectl get` lists in the namespace of a sample. */
export async function showList(cluster: ControlPlane, { namespace }: Sample, kind: string): Promise<void> {
  const { stdout } = await cluster.kubectl("get", kind, `--namespace=${namespace}`);
  say("", dim(`  $ kubectl get ${kind} -n ${namespace}`), indented(stdout));
}

/** Waits for a condition or a JSON path of the binding, with `kubectl wait`. */
export async function waitFor(cluster: ControlPlane, { namespace, binding }: Sample, what: string): Promise<void> {
  const within = `--timeout=${PATIENCE_SECONDS}s`;
  await cluster.kubectl("wait", `--for=${what}`, `secretbinding/${binding}`, `--namespace=${namespace}`, within);
}

/** Runs the controller as its own account, with only the permissions of deploy/manifests, as in a cluster. */
export async function startController(cluster: ControlPlane, ...flags: string[]): Promise<void> {
  const kubeconfig = await cluster.kubeconfigForServiceAccount("inlay-system", "inlay-controller");
  const log = logOf(cluster);
  await cluster.run({
    name: "inlay",
    file: process.execPath,
    args: [join(root, "src", "main.ts"), "controller", "--kubeconfig", kubeconfig, ...flags],
    isReady: async () => (await readFile(log, "utf8")).includes("controller started"),
  });
}

export const harborsIn = ({ namespace }: Sample): string =>
  `/apis/goharbor.io/v1beta1/namespaces/${namespace}/harborclusters`;

/** Returns the first state of an object in a collection for which `holds` is true. */
export async function untilHolds(
  api: Api,
  collection: string,
  holds: (object: AnyObject) => boolean,
  { namespace, binding }: Sample,
): Promise<AnyObject> {
  for await (const { object } of api.watch(collection, PATIENCE_SECONDS)) if (holds(object)) return object;
  throw new Error(`the value did not arrive: kubectl describe secretbinding ${binding} -n ${namespace}`);
}

export function s3Of(harbor: AnyObject): AnyObject {
  return harbor.spec.storage.spec.s3;
}

/** Prints what you can do in another terminal while the control plane stays up. */
export function sayWhatNext(cluster: ControlPlane, variables: string[], commands: string[]): void {
  const kubectl = cluster.kubectlProgram;
  say(
    "",
    bold("The cluster runs until you press Ctrl-C. Try these commands in another terminal:"),
    `  export KUBECONFIG=${cluster.kubeconfigFile}`,
    ...variables.map((each) => `  export ${each}`),
    ...(kubectl.includes("/") ? [`  alias kubectl=${kubectl}`] : []),
    ...commands.map((each) => `  ${each}`),
    dim(`The controller's log: ${logOf(cluster)}`),
  );
}

export const logOf = ({ folder }: ControlPlane) => join(folder, "inlay.log");
