/** `npm start -- --vault`, as a new user runs it. */
import assert from "node:assert/strict";
import { dirname } from "node:path";
import { vaultProgram } from "../control-plane/vault-program.ts";
import { eventually } from "../controller/eventually.ts";
import { registerSecret } from "../controller/leak-detector.ts";
import { Story } from "./story.ts";

describe("npm start -- --vault", function () {
  this.timeout("3m");
  let story: Story;
  before(async function () {
    this.timeout("20m");
    await vaultProgram();
    story = await Story.tell("--vault");
  });
  after(() => story?.interrupt());

  it("tells where a value of Vault arrives, after a rotation with its times, and that it stays while Vault is sealed", () => {
    const { told } = story;
    const arrived = (name: string) => `Secret +•+ +✔ is ${name}\\n +HarborCluster +•+ +✔ is ${name}`;
    assert.match(told, /vault +https:\/\/localhost:\d+ +True +Ready +1\.21\.4/);
    assert.match(told, new RegExp(arrived("in Vault")));
    assert.match(told, /NAME +READY +SYNCED +REASON +AGE\n +s3 +True +2\/2 +Synced/);
    assert.match(told, new RegExp(arrived("the new one in Vault")));
    assert.match(told, /was in the HarborCluster \d+, \d+, \d+ ms after .*\n.* restarted, .* \d+, \d+, \d+ ms/);
    assert.match(told, new RegExp(`says VaultSealed.*\\n +${arrived("what it was")}\\n.*is ready again`));
  });

  it("prints no value of Vault, rotated or not", async () => {
    const log = await story.log;
    for (const value of [
      "AKIAEXAMPLENOTAKEY01",
      "AKIAEXAMPLEROTATED",
      "not/a/real/secret/key/of/AKIAEXAMPLENOTAKEY01",
    ]) {
      assert.notEqual(registerSecret(value), "");
      assert.ok(!story.told.includes(value) && !log.includes(value), "a value of Vault was printed");
    }
  });

  it("stays up for the commands that it prints", async () => {
    await story.shell(story.command(/curl .*$/m));
    await eventually(async () => {
      assert.equal(await story.shell(story.command(/kubectl get harborcluster .*$/m)), "AKIAEXAMPLENOTAKEY02");
    });
    const described = await story.shell(story.command(/kubectl describe .*$/m));
    assert.match(described, /Written .*wrote spec\.storage\.spec\.s3\.accesskey/);
  });

  it("leaves no process and no file after Ctrl-C", () =>
    story.endsWithoutATrace(7, dirname(story.variable("VAULT_CACERT"))));
});
