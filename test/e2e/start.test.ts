/** Runs `npm start` as a new user does: what it prints, what keeps running, and what Ctrl-C stops. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../controller/eventually.ts";
import { registerSecret } from "../controller/leak-detector.ts";
import { root } from "./pages.ts";
import { StartCommand } from "./story.ts";

describe("npm start", function () {
  this.timeout("3m");
  let start: StartCommand;
  before(async () => {
    start = await StartCommand.run();
  });
  after(() => start?.interrupt());

  it("shows the fields before the binding, after it, and after a rotation, with the time that the rotation took", () => {
    const { output } = start;
    assert.match(output, /2\. A HarborCluster.*\n\s+accesskey\s+\(not set\)\n\s+regionendpoint\s+\(not set\)/);
    assert.match(
      output,
      /accesskey\s+•+\s+✔ equals accessKeyID of bucket\n\s+regionendpoint\s+•+\s+✔ equals host and port of bucket/,
    );
    assert.match(output, /NAME\s+READY\s+SYNCED\s+REASON\s+ROLLOUT\s+AGE\n\s+harbor-s3\s+True\s+1\/1\s+Synced/);
    assert.match(output, /accesskey\s+•+\s+✔ equals the new accessKeyID of bucket/);
    assert.match(output, /reached the HarborCluster \d+(, \d+)* ms after/);
  });

  it("prints no value of the Secret, rotated or not", async () => {
    const secret = await readFile(join(root, "samples", "harbor", "02-secret.yaml"), "utf8");
    const values = [/accessKeyID: (\S+)/, /secretAccessKey: (\S+)/, /host: (\S+)/].map(
      (of) => of.exec(secret)?.[1] ?? "",
    );
    const log = await start.log;
    for (const value of [...values, "AKIAEXAMPLEROTATED"]) {
      assert.notEqual(registerSecret(value), "");
      assert.ok(!start.output.includes(value) && !log.includes(value), "a value of the Secret was printed");
    }
  });

  it("keeps running, so that the kubectl commands that it prints work", async () => {
    await start.shell(start.command(/kubectl patch secret .*$/m));
    await eventually(async () => {
      assert.equal(await start.shell(start.command(/kubectl get harborcluster .*$/m)), "AKIAEXAMPLENOTAKEY02");
    });
    const described = await start.shell(start.command(/kubectl describe .*$/m));
    assert.match(described, /Written .*wrote spec\.storage\.spec\.s3\.accesskey/);
  });

  it("stops all processes and removes all files on Ctrl-C", () => start.endsWithoutATrace(6));
});
