/** The section `rollouts` of the configuration is reloaded while the controller runs, and a mistake changes nothing. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Installation } from "../../../src/api/installation.ts";
import { loadInstallation } from "../../../src/cli/config-file.ts";
import { RolloutsFile } from "../../../src/cli/reload-config-file.ts";

const HEAD = "apiVersion: config.inlay.dev/v1alpha1\nkind: ControllerConfiguration\n";
const NONE = { suspend: false };

describe("the section rollouts of the configuration", () => {
  let folder: string;
  let file: string;
  let installation: Installation;
  let live: RolloutsFile;
  let logged: string[];
  let notified: number;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "inlay-config-"));
    file = join(folder, "config.yaml");
    await writeFile(file, HEAD);
    installation = loadInstallation(file, "inlay-system");
    logged = [];
    notified = 0;
    installation.onRollouts(() => notified++);
    const line = (level: string) => (fields: object, text: string) => {
      logged.push(`${level} ${text} ${JSON.stringify(fields)}`);
    };
    const log = { info: line("info"), error: line("error") };
    live = new RolloutsFile(file, installation, "inlay-system", log);
  });
  afterEach(async () => {
    live.stop();
    await rm(folder, { recursive: true });
  });

  async function becomes(text: string): Promise<void> {
    await writeFile(file, HEAD + text);
    await live.look();
  }

  it("logs nothing while the file does not change", async () => {
    assert.deepEqual(installation.rollouts, NONE);
    for (let n = 0; n < 3; n++) await live.look();
    await becomes("# a comment\n");
    assert.deepEqual([installation.rollouts, notified, logged], [NONE, 0, []]);
  });

  it("applies a change, and notifies listeners", async () => {
    await becomes("rollouts: { suspend: true, maxConcurrent: 20, maxConcurrentPerNamespace: 5 }\n");
    const rollouts = { suspend: true, maxConcurrent: 20, maxConcurrentPerNamespace: 5 };
    assert.deepEqual([installation.rollouts, notified], [rollouts, 1]);
    await live.look();
    assert.deepEqual(logged, [
      `info applied the changed section rollouts of the configuration ${JSON.stringify({ rollouts })}`,
    ]);
    await becomes("");
    assert.deepEqual([installation.rollouts, notified], [NONE, 2]);
  });

  it("keeps the former settings while the file has a mistake, which is logged once", async () => {
    await becomes("rollouts: { suspend: true }\n");
    logged = [];
    const mistakes: [text: string, says: RegExp][] = [
      ["rollouts: { suspend: no way }\n", /rollouts\.suspend: must be true or false/],
      ["rollouts: {}\ntargets: { deny: [{}] }\n", /targets\.deny\[0\]: .*apiGroups/],
      ["rollouts: {", /error/],
    ];
    for (const [text, says] of mistakes) {
      for (let n = 0; n < 3; n++) await becomes(text);
      assert.match(logged.join("\n"), says);
      assert.deepEqual([installation.rollouts, logged.length], [{ suspend: true }, 1], logged.join("\n"));
      logged = [];
    }
    await becomes("rollouts: { suspend: true }\n");
    assert.deepEqual([installation.rollouts, notified, logged.length], [{ suspend: true }, 1, 1]);
    assert.match(logged[0] ?? "", /^info /);
  });

  it("keeps the former settings while the file is missing, and applies a change when it is back", async () => {
    await rm(file);
    for (let n = 0; n < 3; n++) await live.look();
    assert.equal(logged.length, 1);
    assert.match(logged[0] ?? "", /^error .*ENOENT/);
    await becomes("rollouts: { maxConcurrent: 1 }\n");
    assert.deepEqual(installation.rollouts, { suspend: false, maxConcurrent: 1 });
  });

  it("changes no other section of the installation", async () => {
    await becomes(
      "rollouts: { suspend: true }\nallowSystemNamespaces: [kube-system]\nrequireAcknowledgement: [ReadableCopies]\n",
    );
    assert.equal(installation.rollouts.suspend, true);
    assert.equal(installation.closedNamespace("kube-system")?.reason, "ForbiddenNamespace");
    assert.equal(installation.requires("ReadableCopies"), false);
  });

  it("reads the file again by itself, also when a ConfigMap volume changes by a new link", async function () {
    this.timeout(20_000);
    const put = async (version: string, text: string) => {
      await mkdir(join(folder, version));
      await writeFile(join(folder, version, "config.yaml"), HEAD + text);
      await symlink(version, join(folder, "..data_tmp"));
      await rename(join(folder, "..data_tmp"), join(folder, "..data"));
    };
    await put("..1", "");
    await rm(file);
    await symlink(join("..data", "config.yaml"), file);
    live.start();
    const changed = new Promise<void>((resolve) => installation.onRollouts(resolve));
    await put("..2", "rollouts: { suspend: true }\n");
    await changed;
    assert.deepEqual(installation.rollouts, { suspend: true });
  });
});
