/** Runs `npm start -- --vault` as a new user does. */
import assert from "node:assert/strict";
import { dirname } from "node:path";
import { vaultProgram } from "../control-plane/vault/program.ts";
import { eventually } from "../controller/eventually.ts";
import { registerSecret } from "../controller/leak-detector.ts";
import { StartCommand } from "./story.ts";

describe("npm start -- --vault", function () {
  this.timeout("3m");
  let start: StartCommand;
  before(async function () {
    this.timeout("20m");
    await vaultProgram();
    start = await StartCommand.run("--vault");
  });
  after(() => start?.interrupt());

  it("shows that a value in Vault reaches its targets, also after a rotation, and stays there while Vault is sealed", () => {
    const { output } = start;
    const arrived = (name: string) => `Secret +•+ +✔ equals ${name}\\n +HarborCluster +•+ +✔ equals ${name}`;
    assert.match(output, /vault +https:\/\/localhost:\d+ +True +Ready +1\.21\.4/);
    assert.match(output, new RegExp(arrived("the value in Vault")));
    assert.match(output, /NAME +READY +SYNCED +REASON +ROLLOUT +AGE\n +s3 +True +2\/2 +Synced/);
    assert.match(output, new RegExp(arrived("the new value in Vault")));
    assert.match(output, /reached the HarborCluster \d+, \d+, \d+ ms after .*\n.* restarted once .* \d+, \d+, \d+ ms/);
    assert.match(output, new RegExp(`reports VaultSealed.*\\n +${arrived("the value before")}\\n.*is ready again`));
  });

  it("prints no value of Vault, rotated or not", async () => {
    const log = await start.log;
    for (const value of [
      "AKIAEXAMPLENOTAKEY01",
      "AKIAEXAMPLEROTATED",
      "not/a/real/secret/key/of/AKIAEXAMPLENOTAKEY01",
    ]) {
      assert.notEqual(registerSecret(value), "");
      assert.ok(!start.output.includes(value) && !log.includes(value), "a value of Vault was printed");
    }
  });

  it("keeps running, so that the commands that it prints work", async () => {
    await start.shell(start.command(/curl .*$/m));
    await eventually(async () => {
      assert.equal(await start.shell(start.command(/kubectl get harborcluster .*$/m)), "AKIAEXAMPLENOTAKEY02");
    });
    const described = await start.shell(start.command(/kubectl describe .*$/m));
    assert.match(described, /Written .*wrote spec\.storage\.spec\.s3\.accesskey/);
  });

  it("stops all processes and removes all files on Ctrl-C", () =>
    start.endsWithoutATrace(7, dirname(start.variable("VAULT_CACERT"))));
});
