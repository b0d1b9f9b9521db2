/** Runs the README of each sample word for word. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { sharedController } from "../controller/shared.ts";
import { foldersIn, runPage, shell } from "./pages.ts";

export const folders = foldersIn("samples");

/** Tests one of so many equal shares of the samples, so that the shares run side by side. */
export function testSamples(share: number, shares: number): void {
  describe(`the samples, share ${share} of ${shares}:`, () => {
    before(() => sharedController(controlPlane()).start());

    for (const name of folders.filter((_, index) => index % shares === share - 1)) {
      it(`the README of ${name} does what it says, and leaves nothing`, async () => {
        const before = await namespaces();
        const steps = await runPage(`samples/${name}/README.md`);
        assert.ok(steps.length > 2, "a story has commands");
        assert.deepEqual(
          (await namespaces()).filter((each) => !before.includes(each)),
          [],
        );
      }).timeout("2m");
    }
  });
}

const namespaces = async () => (await shell("kubectl get namespaces -o name")).split("\n");
