/** The workflows of .github: valid, pinned, with few permissions, and with commands that work on this repository. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { parse } from "yaml";
import { actionlintProgram } from "../actionlint/program.ts";
import type { AnyObject } from "../controller/api.ts";
import { objectsOf } from "../controller/manifests.ts";
import { helm, KUBERNETES } from "../helm/helm.ts";
import { helmProgram } from "../helm/program.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..", "..");
const files = globSync(".github/workflows/*.yml", { cwd: root }).sort();
const text = (path: string) => readFileSync(join(root, path), "utf8");
const jobsOf = (path: string): [string, AnyObject][] => Object.entries(parse(text(path)).jobs);
const stepsOf = (path: string, job: string): AnyObject[] => parse(text(path)).jobs[job].steps;

describe("the workflows", function () {
  this.timeout("1m");

  it("are accepted by actionlint, which finds a mistake in a copy", async () => {
    const actionlint = await actionlintProgram();
    assert.deepEqual(files, [".github/workflows/ci.yml", ".github/workflows/release.yml"]);
    await run(actionlint, ["-no-color", "-shellcheck=", ...files], { cwd: root });
    const folder = await mkdtemp(join(tmpdir(), "inlay-workflows-"));
    try {
      const file = join(folder, "ci.yml");
      await writeFile(file, text(".github/workflows/ci.yml").replace("runner.os", "runner.oss"));
      await assert.rejects(run(actionlint, ["-no-color", file]), ({ stdout }) => /"oss" is not defined/.test(stdout));
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("pin each action by its commit, and name its version", () => {
    for (const path of files) {
      const uses = text(path).match(/^.*\buses: .*$/gm) ?? [];
      assert.ok(uses.length > 0, path);
      for (const line of uses)
        assert.match(line, /uses: (\.\/\S+|[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$/, path);
    }
    const pins = files.flatMap((path) => [...text(path).matchAll(/uses: (\S+)@(\w{40}) # (\S+)/g)]);
    const byAction = Map.groupBy(pins, ([, action]) => action);
    for (const [action, all] of byAction)
      assert.equal(new Set(all.map(([, , commit, version]) => `${commit} ${version}`)).size, 1, action);
  });

  it("have no permission by default, only what each job needs, and no stored credentials", () => {
    const allowed: Record<string, string[]> = {
      image: ["attestations", "id-token", "packages"],
      chart: ["attestations", "id-token", "packages"],
      npm: ["id-token"],
    };
    for (const path of files) {
      assert.deepEqual(parse(text(path)).permissions, {}, path);
      assert.doesNotMatch(text(path), /pull_request_target|secrets\./);
      for (const [name, job] of jobsOf(path)) {
        const entries = Object.entries(job.permissions);
        assert.deepEqual(
          entries.filter(([, access]) => access !== "write"),
          [["contents", "read"]],
          name,
        );
        const writes = entries.filter(([, access]) => access === "write").map(([scope]) => scope);
        assert.deepEqual(writes.sort(), allowed[name] ?? [], name);
        assert.ok(job.uses !== undefined || job["timeout-minutes"] <= 60, name);
        for (const step of job.steps ?? [])
          if (step.uses?.startsWith("actions/checkout@")) assert.equal(step.with["persist-credentials"], false, name);
      }
    }
  });

  it("run the test command of the README, with the Node and Go that it names, before each release", () => {
    const steps = stepsOf(".github/workflows/ci.yml", "test");
    const commands = steps.flatMap((step) => step.run ?? []);
    assert.deepEqual(commands, ["npm ci && npm test"]);
    assert.match(text("README.md"), /^npm ci && npm test /m);
    const version = (action: string, input: string) =>
      steps.find((step) => step.uses?.startsWith(`${action}@`))?.with[input];
    assert.match(
      text("README.md"),
      new RegExp(
        `Go ${version("actions/setup-go", "go-version")} and Node \\(version ${version("actions/setup-node", "node-version")}`,
      ),
    );
    const needs = Object.fromEntries(jobsOf(".github/workflows/release.yml").map(([name, job]) => [name, job.needs]));
    assert.deepEqual(needs, { test: undefined, image: "test", chart: "image", npm: "image" });
  });

  it("package a chart with the image of the release, by digest, and links to its runbooks", async () => {
    const step = stepsOf(".github/workflows/release.yml", "chart").find(({ name }) => name?.startsWith("Package"));
    const { version } = JSON.parse(text("package.json"));
    const folder = await mkdtemp(join(tmpdir(), "inlay-release-"));
    try {
      await cp(join(root, "deploy", "chart"), join(folder, "deploy", "chart"), { recursive: true });
      const digest = `sha256:${"a".repeat(64)}`;
      // Helm of the tests has the version of a cluster without one, which is older than the chart requires.
      const commands = step?.run.replace("helm lint --strict", `helm lint --strict --kube-version ${KUBERNETES}`);
      const path = `${dirname(await helmProgram())}:${process.env["PATH"]}`;
      const env = {
        PATH: path,
        HOME: folder,
        REPOSITORY: "example.com/owner/inlay",
        DIGEST: digest,
        GITHUB_SERVER_URL: "https://git.example.com",
        GITHUB_REPOSITORY: "owner/inlay",
        GITHUB_REF_NAME: `v${version}`,
      };
      await run("bash", ["-ec", commands], { cwd: folder, env });
      const packaged = join(folder, `inlay-${version}.tgz`);
      const { stdout } = await helm([
        ...["template", "inlay", packaged, "--kube-version", KUBERNETES],
        ...["--set", "prometheusRule.enabled=true"],
      ]);
      const page = `https://git.example.com/owner/inlay/blob/v${version}/docs/runbooks.md#`;
      assert.ok(stdout.includes(`runbook_url: ${page}`));
      assert.doesNotMatch(stdout, /runbook_url: docs/);
      const images = objectsOf(stdout).flatMap(
        ({ spec }) => (spec?.template?.spec ?? spec)?.containers?.map(({ image }: AnyObject) => image) ?? [],
      );
      assert.deepEqual(images, Array(2).fill(`example.com/owner/inlay@${digest}`));
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("publish a package with the program, the CRDs, the compositions and the manifests only", async () => {
    const { stdout } = await run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
      cwd: root,
      maxBuffer: 2 ** 26,
    });
    const paths: string[] = JSON.parse(stdout)[0].files.map(({ path }: AnyObject) => path);
    const roots = new Set(paths.map((path) => path.split("/")[0]));
    assert.deepEqual([...roots].sort(), [
      "LICENSE",
      "README.md",
      "apis",
      "compositions",
      "deploy",
      "dist",
      "package.json",
    ]);
    assert.deepEqual(
      paths.filter((path) => /^deploy\/[^/]*\.ts$/.test(path)),
      [],
    );
    assert.ok(paths.includes("deploy/chart/values.yaml"));
  });

  it("build an image for two architectures without running programs of the other one", () => {
    const build = stepsOf(".github/workflows/release.yml", "image").find(({ id }) => id === "build")?.with;
    assert.deepEqual([build.platforms, build.sbom, build.provenance], ["linux/amd64,linux/arm64", true, "mode=max"]);
    const stages = text("Dockerfile")
      .split(/^(?=FROM )/m)
      .slice(1);
    for (const stage of stages) {
      if (/^RUN /m.test(stage)) assert.match(stage, /^FROM --platform=\$BUILDPLATFORM /);
    }
    // Packages with programs of their own would be those of the machine that builds.
    const { packages } = JSON.parse(text("package-lock.json"));
    const inImage = Object.entries<AnyObject>(packages).filter(
      ([folder, each]) => folder && !each.dev && !each.optional,
    );
    assert.ok(inImage.length > 10);
    assert.deepEqual(
      inImage.filter(([, { os, cpu }]) => os !== undefined || cpu !== undefined),
      [],
    );
  });
});
