/** Runs the README of each composition word for word. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { Api } from "../controller/api.ts";
import { applyFile, deleteFile } from "../controller/manifests.ts";
import { auditLog, sharedController } from "../controller/shared.ts";
import { foldersIn, root, runPage, type Step, shell } from "./pages.ts";
import { unusedRights } from "./unused-rights.ts";

export const folders = foldersIn("compositions");
/** Their pages need a Vault server. compositions-vault.test.ts and compositions-registration.test.ts run them. */
export const WITH_VAULT = ["vault-sync-status", "vault-static-secret", "vault-service-registration"];
/** Their pages change the configuration. compositions-annotations.test.ts runs them. */
export const BY_CONFIGURATION = ["reloader", "wave"];
const plain = folders.filter((each) => !WITH_VAULT.includes(each) && !BY_CONFIGURATION.includes(each));
/** Their accounts have permissions in several namespaces. Their pages are run with a check that each permission is used. */
export const ACROSS_NAMESPACES = ["shared-secret", "reflector", "replicator"];
/** The command that all pages run, and that no page reverts. */
export const MANIFEST = join(root, "deploy", "manifests", "optional", "compositions.yaml");

/** Tests one of `shares` equal shares of the compositions, so that the shares run side by side. */
export function testCompositions(share: number, shares: number): void {
  describe(`the compositions, share ${share} of ${shares}:`, () => {
    const api = () => new Api(controlPlane());
    before(async () => {
      await applyFile(api(), MANIFEST);
      await sharedController(controlPlane()).start();
    });
    after(() => deleteFile(api(), MANIFEST));

    for (const name of plain.filter((_, index) => index % shares === share - 1))
      it(`the README of ${name} works word for word, and removes what it creates`, async () => {
        const mark = await auditLog().mark();
        await testPage(name);
        if (ACROSS_NAMESPACES.includes(name)) assert.deepEqual(await unusedRights(name, mark), []);
      }).timeout("2m");
  });
}

/** Runs the page of a folder. Calls `taken` after each of its steps. `env` has the variables that the page asks you to set. */
export async function testPage(
  name: string,
  taken?: (step: Step) => Promise<void>,
  env: NodeJS.ProcessEnv = {},
): Promise<void> {
  const before = await objects();
  const steps = await runPage(`compositions/${name}/README.md`, env, taken);
  assert.ok(steps.length > 5, "a page installs, tries, and removes");
  assert.deepEqual(
    (await objects()).filter((each) => !before.includes(each)),
    [],
  );
}

const objects = async () =>
  (await shell("kubectl get namespaces,bindingcompositions,clusterroles,clusterrolebindings -o name")).split("\n");
