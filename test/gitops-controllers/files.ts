/** The files that the repositories of the tests have: Inlay as it ships, and the objects of a team. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { registerSecret } from "../controller/leak-detector.ts";
import type { Files } from "./git.ts";

const root = join(import.meta.dirname, "..", "..");

/** A copy of files of this repository, in the same folders. */
export function shipped(...globs: string[]): Files {
  const names = globSync(globs, { cwd: root });
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(root, name), "utf8")]));
}

/** Inlay's manifests, with a kustomization as docs/tasks/install-with-kustomize.md has it. */
export const inlayFiles = (): Files => ({
  ...shipped("{apis,deploy,deploy/policies,deploy/manifests}/{*.yaml,Kustomization}"),
  "my-cluster/kustomization.yaml": stringify({
    apiVersion: "kustomize.config.k8s.io/v1beta1",
    kind: "Kustomization",
    sortOptions: { order: "fifo" },
    resources: ["../deploy"],
    images: [{ name: "inlay", newName: "registry.example.com/inlay", newTag: "0.1.0" }],
  }),
});

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
