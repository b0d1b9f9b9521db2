/** `npm start`, as a new user runs it: what it tells, what stays up, and what Ctrl-C leaves. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../controller/eventually.ts";
import { registerSecret } from "../controller/leak-detector.ts";
import { root } from "./pages.ts";
import { Story } from "./story.ts";

describe("npm start", function () {
  this.timeout("3m");
  let story: Story;
  before(async () => {
    story = await Story.tell();
  });
  after(() => story?.interrupt());

  it("tells of the fields before, after, and after a rotation with its time", () => {
    const { told } = story;
    assert.match(told, /2\. A HarborCluster.*\n\s+accesskey\s+\(not there\)\n\s+regionendpoint\s+\(not there\)/);
    assert.match(
      told,
      /accesskey\s+•+\s+✔ is bucket's accessKeyID\n\s+regionendpoint\s+•+\s+✔ is bucket's host and port/,
    );
    assert.match(told, /NAME\s+READY\s+SYNCED\s+REASON\s+AGE\n\s+harbor-s3\s+True\s+1\/1\s+Synced/);
    assert.match(told, /accesskey\s+•+\s+✔ is bucket's new accessKeyID/);
    assert.match(told, /was in the HarborCluster \d+(, \d+)* ms after/);
  });

  it("prints no value of the Secret, rotated or not", async () => {
    const secret = await readFile(join(root, "samples", "harbor", "02-secret.yaml"), "utf8");
    const values = [/accessKeyID: (\S+)/, /secretAccessKey: (\S+)/, /host: (\S+)/].map(
      (of) => of.exec(secret)?.[1] ?? "",
    );
    const log = await story.log;
    for (const value of [...values, "AKIAEXAMPLEROTATED"]) {
      assert.notEqual(registerSecret(value), "");
      assert.ok(!story.told.includes(value) && !log.includes(value), "a value of the Secret was printed");
    }
  });

  it("stays up for the kubectl commands that it prints", async () => {
    await story.shell(story.command(/kubectl patch secret .*$/m));
    await eventually(async () => {
      assert.equal(await story.shell(story.command(/kubectl get harborcluster .*$/m)), "AKIAEXAMPLENOTAKEY02");
    });
    const described = await story.shell(story.command(/kubectl describe .*$/m));
    assert.match(described, /Written .*wrote spec\.storage\.spec\.s3\.accesskey/);
  });

  it("leaves no process and no file after Ctrl-C", () => story.endsWithoutATrace(6));
});
