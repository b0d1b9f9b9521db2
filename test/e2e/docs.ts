/** Runs the commands of the pages in docs/ word for word. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { Api } from "../controller/api.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { installHarbors } from "../controller/harbor.ts";
import { deleteFile } from "../controller/manifests.ts";
import { stopSharedController } from "../controller/shared.ts";
import { pages, textOf } from "./doc-blocks.ts";
import { root, runPage, type Step, shell, stepsOf } from "./pages.ts";

/** A control plane without Inlay runs these: docs-install.test.ts. */
const INSTALLATION = ["install", "install-with-kustomize", "upgrade", "uninstall"].map(
  (name) => `docs/tasks/${name}.md`,
);
/** The real Argo CD and Flux run these: test/gitops-controllers. */
const GITOPS = ["docs/gitops.md", "docs/tasks/install-with-gitops.md"];
const withCommands = pages.filter(
  (page) =>
    page.startsWith("docs/") && ![...INSTALLATION, ...GITOPS].includes(page) && stepsOf(textOf(page)).length > 0,
);

const RESTART = "kubectl rollout restart deployment/inlay-controller -n inlay-system";
const CONFIG = "kubectl get configmap inlay-controller -n inlay-system -o jsonpath='{.data.config\\.yaml}'";
const KINDS = [
  ...["namespaces", "serviceaccounts", "clusterroles", "clusterrolebindings", "roles", "rolebindings", "crds"],
  ...["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
  ...["bindingcompositions", "secretbindings", "secretgrants", "vaultconnections"],
].join();
/** A page installs this for its readers to keep. Other tests run without it. */
const AUTHOR_ANNOTATION = join(root, "deploy", "policies", "optional", "author-annotation.yaml");

/** A controller with the configuration that is in the cluster, as the pods of the installation have it. */
export class InstalledController {
  readonly #file = join(controlPlane().folder, "docs.yaml");
  readonly #process = new ControllerProcess(controlPlane(), "--config", this.#file);

  async start(): Promise<void> {
    await stopSharedController();
    await writeFile(this.#file, await shell(CONFIG));
    await this.#process.start();
  }

  async stop(): Promise<void> {
    await this.#process.stop();
  }

  /** Does what the kubelet does when a page restarts the pods. */
  readonly restarted = async ({ commands }: Step): Promise<void> => {
    if (!commands.includes(RESTART)) return;
    await this.stop();
    await this.start();
  };
}

/** Tests one of so many equal shares of the pages, so that the shares run side by side. */
export function testDocs(share: number, shares: number): void {
  describe(`the pages of docs with commands, share ${share} of ${shares}:`, () => {
    let controller: InstalledController;
    before(async () => {
      controller = new InstalledController();
      await controller.start();
    });
    after(() => controller?.stop());

    for (const page of withCommands.filter((_, index) => index % shares === share - 1))
      it(`${page} does what it says, and leaves the cluster as it was`, async () => {
        await testPage(page, controller.restarted);
      }).timeout("2m");
  });
}

async function testPage(page: string, taken: (step: Step) => Promise<void>): Promise<void> {
  const before = await installed();
  await runPage(page, {}, taken);
  const api = new Api(controlPlane());
  // The test setup installs this kind for all tests, and pages install and delete it.
  await installHarbors(api);
  await deleteFile(api, AUTHOR_ANNOTATION);
  assert.deepEqual(await installed(), before);
}

/** What a page must leave as it was. */
const installed = async () => ({ config: await shell(CONFIG), objects: await objects() });

const objects = async () => (await shell(`kubectl get ${KINDS} -A -o name`)).split("\n").sort();
