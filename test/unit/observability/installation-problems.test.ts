/** What is wrong with the installation, as the log, the metrics and the listeners see it. */
import assert from "node:assert/strict";
import { InstallationProblems } from "../../../src/observability/installation-problems.ts";
import { Metrics } from "../../../src/observability/metrics.ts";

describe("the problems of an installation", () => {
  const logged: [string, object, string][] = [];
  const write = (level: string) => (fields: object, text: string) => logged.push([level, fields, text]);
  const problems = new InstallationProblems({ info: write("info"), error: write("error") });
  const changed: string[] = [];
  problems.onChange((check) => changed.push(check));
  const missing = { message: "two are missing", parts: ["a", "b"] };

  beforeEach(() => {
    for (const list of [logged, changed]) list.splice(0);
  });

  it("are logged once when they appear, and once when they are gone", () => {
    problems.report("policies", undefined);
    assert.deepEqual([logged, changed], [[], []]);
    for (let checks = 0; checks < 2; checks++) problems.report("policies", { ...missing });
    assert.deepEqual(logged.splice(0), [["error", { check: "policies" }, "two are missing"]]);
    problems.report("policies", { message: "one is missing", parts: ["a"] });
    assert.deepEqual(logged.splice(0), [["error", { check: "policies" }, "one is missing"]]);
    for (let checks = 0; checks < 2; checks++) problems.report("policies", undefined);
    assert.deepEqual(
      logged.map(([level, fields]) => [level, fields]),
      [["info", { check: "policies" }]],
    );
    assert.deepEqual(changed, ["policies", "policies", "policies"]);
  });

  it("are gone with the result of a check that can't be made any more, and nothing is said to pass", () => {
    problems.report("policies", missing);
    logged.splice(0);
    for (let checks = 0; checks < 2; checks++) problems.withdraw("policies");
    assert.deepEqual([problems.all.has("policies"), logged], [false, []]);
    assert.deepEqual(changed, ["policies", "policies"]);
  });

  it("are counted in the metrics, without a series for a check that has no result", async () => {
    const metrics = new Metrics();
    metrics.observeInstallation(problems);
    problems.report("policies", missing);
    problems.report("permissions", undefined);
    const series = async () =>
      (await metrics.text()).split("\n").filter((line) => line.startsWith("inlay_installation_problems{"));
    assert.deepEqual((await series()).sort(), [
      'inlay_installation_problems{check="permissions"} 0',
      'inlay_installation_problems{check="policies"} 2',
    ]);
    problems.withdraw("policies");
    assert.deepEqual(await series(), ['inlay_installation_problems{check="permissions"} 0']);
  });
});
