/**
 * Runs the pages for users of tools that restart workloads by annotations. Each page changes the configuration of the controller.
 */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { RELOADER_KEYS } from "../../src/api/reloader-rules.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { foundIn, registerSecret } from "../controller/leak-detector.ts";
import { stopSharedController } from "../controller/shared.ts";
import { BY_CONFIGURATION, testPage } from "./compositions.ts";
import { root, type Step, shell } from "./pages.ts";

const RESTART = "kubectl rollout restart deployment/inlay-controller -n inlay-system";
const CONFIG = "kubectl get configmap inlay-controller -n inlay-system -o jsonpath='{.data.config\\.yaml}'";

describe("the compositions that are sections of the configuration:", () => {
  let file: string;
  let controller: ControllerProcess;

  before(async () => {
    for (const value of ["example-no-password-1", "example-no-password-2"]) registerSecret(value);
    await stopSharedController();
    file = join(controlPlane().folder, "annotations.yaml");
    controller = new ControllerProcess(controlPlane(), "--config", file);
    await start();
  });
  after(async () => {
    await controller?.stop();
    assert.deepEqual(foundIn(controller.output), []);
  });

  /** Replaces a restarted pod, as the kubelet does. */
  async function start(): Promise<void> {
    await writeFile(file, await shell(CONFIG));
    await controller.start();
  }

  const restarted = async ({ commands }: Step) => {
    if (!commands.includes(RESTART)) return;
    await controller.stop();
    await start();
  };

  for (const name of BY_CONFIGURATION)
    it(`the README of ${name} works word for word, and removes what it creates`, async () => {
      const config = await shell(CONFIG);
      await testPage(name, restarted);
      assert.equal(await shell(CONFIG), config);
    }).timeout("2m");

  it("the README of reloader lists each of its annotations and switches", async () => {
    const page = await readFile(join(root, "compositions", "reloader", "README.md"), "utf8");
    for (const [name, key] of Object.entries(RELOADER_KEYS)) {
      assert.ok(page.includes(`\`${key}`), `${key} has no row`);
      assert.match(page, new RegExp(`\\b${name}\\b`), `annotations.${name} is not named`);
    }
  });
});
