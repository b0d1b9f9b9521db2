/** The objects of a team, which the repositories of the tests have. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { registerSecret } from "../controller/leak-detector.ts";

const root = join(import.meta.dirname, "..", "..");

/** The objects in a sync wave of Argo CD. */
export const inWave = (yaml: string, wave: string): string =>
  yaml.replaceAll("metadata:\n", `metadata:\n  annotations: { argocd.argoproj.io/sync-wave: "${wave}" }\n`);

/** The YAML files directly in a folder of the repository, by their paths in another folder. */
export function shipped(folder: string, into: string): Record<string, string> {
  const names = readdirSync(join(root, folder)).filter((name) => name.endsWith(".yaml"));
  return Object.fromEntries(names.map((name) => [join(into, name), readFileSync(join(root, folder, name), "utf8")]));
}

export const harborCrd = join(root, "samples", "harbor", "crd");

const sample = (name: string) => readFileSync(join(root, "samples", "harbor", `${name}.yaml`), "utf8");
for (const [, value = ""] of sample("02-secret").matchAll(/KeyI?D?: (.+)/g)) registerSecret(value);

/** The objects of samples/harbor. */
export const harbor = {
  namespace: sample("00-namespace"),
  account: sample("01-account"),
  secret: sample("02-secret"),
  cluster: sample("03-harborcluster"),
  binding: sample("04-binding"),
};

/** The HarborCluster with a value for the field that the binding writes, and with a version. */
export const withPlaceholder = (version: string): string =>
  harbor.cluster.replace("2.5.0", version).replace("bucket: harbor\n", "$&        accesskey: PLACEHOLDER\n");
