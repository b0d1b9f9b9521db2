/** The first quarter of the compositions, and their index. */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { Api } from "../controller/api.ts";
import { applyObjects, deleteObjects, objectsIn, objectsOf } from "../controller/manifests.ts";
import { commandsIn } from "../controller/paste.ts";
import { sharedController } from "../controller/shared.ts";
import { folders, MANIFEST, testCompositions } from "./compositions.ts";
import { foldersLinkedFrom, root, runPage, shell, stepsOf } from "./pages.ts";

const INDEX = "compositions/README.md";
const textOf = (page: string) => readFile(join(root, page), "utf8");

testCompositions(1, 4);

describe("the index of compositions", () => {
  it("links to every folder, and each has the same files", async () => {
    assert.deepEqual((await foldersLinkedFrom(INDEX)).toSorted(), folders.toSorted());
    for (const folder of folders) {
      const files = await readdir(join(root, "compositions", folder));
      // A switch of the controller or a sample replaces some compositions.
      const needed = files.includes("composition.yaml") ? ["README.md", "account.yaml", "sample"] : ["README.md"];
      for (const file of needed) assert.ok(files.includes(file), `${folder} has no ${file}`);
    }
  });

  it("has commands that work, and an example that the API server accepts", async () => {
    const api = new Api(controlPlane());
    await sharedController(controlPlane()).start();
    const [, example = ""] = /^```yaml\n(.*?)^```/ms.exec(await textOf(INDEX)) ?? [];
    const [composition] = objectsOf(example);
    const name = composition?.metadata.name;
    await runPage(INDEX);
    try {
      await applyObjects(api, [composition]);
      await shell(`kubectl wait --for=condition=Accepted --timeout=30s bindingcomposition/${name}`);
    } finally {
      await deleteObjects(api, [composition]);
      await shell("kubectl delete clusterrolebinding inlay-compositions");
      await deleteObjects(api, await objectsIn(MANIFEST));
    }
  });
});

describe("the README of harbor", () => {
  it("grants by the command that the condition NotGranted names", async () => {
    const steps = stepsOf(await textOf("compositions/harbor/README.md"));
    const at = steps.findIndex(({ prints }) => prints?.includes("SecretGrant"));
    assert.equal(commandsIn(steps[at]?.prints ?? "").trim(), steps[at + 1]?.commands.trim());
  });
});
