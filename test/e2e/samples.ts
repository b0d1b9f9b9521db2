/** Runs the README of each sample word for word. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { sharedController } from "../controller/shared.ts";
import { foldersIn, root, runPage, shell } from "./pages.ts";

export const folders = foldersIn("samples");
/** Their pages need a Vault server. vault-samples.test.ts runs them. */
export const vaultFolders = folders.filter((name) =>
  readFileSync(join(root, "samples", name, "README.md"), "utf8").includes("$VAULT_ADDR"),
);
const otherFolders = folders.filter((name) => !vaultFolders.includes(name));

/** Tests one of `shares` equal shares of the samples, so that the shares run side by side. */
export function testSamples(share: number, shares: number): void {
  describe(`the samples, share ${share} of ${shares}:`, () => {
    before(() => sharedController(controlPlane()).start());
    for (const name of otherFolders.filter((_, index) => index % shares === share - 1)) testSample(name);
  });
}

/** `env` returns the variables that the page asks you to set. */
export function testSample(name: string, env = (): NodeJS.ProcessEnv => ({})): void {
  it(`the README of ${name} works word for word, and removes what it creates`, async () => {
    const before = await namespaces();
    const steps = await runPage(`samples/${name}/README.md`, env());
    assert.ok(steps.length > 2, "an example has commands");
    assert.deepEqual(
      (await namespaces()).filter((each) => !before.includes(each)),
      [],
    );
  }).timeout("2m");
}

const namespaces = async () => (await shell("kubectl get namespaces -o name")).split("\n");
