/** Runs `inlay init` as a user does: with flags, in a dialog on a terminal, and up to a binding that is ready. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { inlay } from "../controller/cli.ts";
import { secretText } from "../controller/leak-detector.ts";
import { applyObjects, objectsOf } from "../controller/manifests.ts";
import { onTerminal } from "../controller/terminal.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const ACCESS_KEY = "spec.storage.spec.s3.accesskey";

describe("inlay init", function () {
  this.timeout("2m");
  let folder: string;
  let team: TestNamespace;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "inlay-init-"));
    team = await createNamespace({ account: false, rules: [] });
    await team.secret("bucket", { accessKeyID: secretText("access"), host: secretText("host") });
    await Promise.all([team.harbor(), team.harbor("other", { accesskey: secretText("old") })]);
  });
  after(() => rm(folder, { recursive: true }));

  const run = (...args: string[]) => inlay(controlPlane().kubeconfigFile, "init", "-n", team.namespace, ...args);
  const flags = (path: string, secret = "bucket", key = "accessKeyID", target = "HarborCluster/harbor") =>
    run("--target", target, "--path", path, "--secret", secret, "--key", key);

  it("writes a binding that is ready with the permissions of inlay rbac", async () => {
    const { stdout, stderr, code } = await run(
      ...["--target", "harborclusters.goharbor.io/harbor", "--name", "harbor-s3"],
      ...["--field", `${ACCESS_KEY}=bucket/accessKeyID`, "--field", "spec.storage.spec.s3.regionendpoint=bucket/host"],
    );
    assert.deepEqual([code, stderr], [0, ""]);
    const file = join(folder, "binding.yaml");
    await writeFile(file, stdout);
    const validation = await inlay(controlPlane().kubeconfigFile, "validate", "--strict", "--cluster", "-f", file);
    assert.deepEqual([validation.code, validation.stderr], [0, ""], validation.stdout);
    const rbac = await inlay(controlPlane().kubeconfigFile, "rbac", "-f", file, "--cluster");
    assert.equal(rbac.code, 0, rbac.stderr);
    await applyObjects(team.api, [...objectsOf(rbac.stdout), ...objectsOf(stdout)]);
    await team.until("harbor-s3", "Synced");
    const { data } = await team.api.get(`${team.path("v1", "secrets")}/bucket`);
    assert.equal((await team.s3()).accesskey, Buffer.from(data.accessKeyID, "base64").toString());
  });

  it("warns of a value that differs from the key, and says how to replace it", async () => {
    const { stdout, stderr, code } = await flags(ACCESS_KEY, "bucket", "accessKeyID", "HarborCluster/other");
    assert.equal(code, 0, stderr);
    assert.match(
      stderr,
      new RegExp(`^warning: ${ACCESS_KEY} of HarborCluster .*/other has another value than key .*onConflict`),
    );
    const [binding] = objectsOf(stdout);
    binding.spec.targets[0].onConflict = "Force";
    assert.match(
      stdout,
      /# To replace the present values of spec\.storage\.spec\.s3\.accesskey, add: onConflict: Force\n/,
    );
    await team.grant(
      [{ apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs: ["get", "list", "watch", "patch"] }],
      {
        role: "other",
      },
    );
    await applyObjects(team.api, [binding]);
    await team.until(binding.metadata.name, "Synced");
    assert.equal((await flags(ACCESS_KEY, "bucket", "accessKeyID", "HarborCluster/other")).stderr, "");
  });

  it("says which path, key, Secret, object or kind was probably meant, in one line", async () => {
    const wrong = [
      [await flags("spec.storage.spec.s3.acesskey"), /Did you mean spec\.storage\.spec\.s3\.accesskey\?/],
      [await flags(ACCESS_KEY, "bucket", "accesKeyID"), /did you mean accessKeyID\?/],
      [await flags(ACCESS_KEY, "buckets"), /there is no Secret .*\/buckets; .* has bucket/],
      [await flags(ACCESS_KEY, "bucket", "host", "HarborCluster/harbour"), /there is no HarborCluster .* has harbor/],
      [await flags(ACCESS_KEY, "bucket", "host", "HarborCluser/harbor"), /did you mean HarborCluster\?/],
      [await flags("status.phase"), /status\.phase can't be written/],
    ] as const;
    for (const [{ stdout, stderr, code }, message] of wrong) {
      assert.deepEqual([stdout, code], ["", 1]);
      assert.match(stderr, message);
      assert.equal(stderr.trimEnd().split("\n").length, 1, stderr);
    }
  });

  it("names the missing flags if it can't ask", async () => {
    const missing = async (...args: string[]) => (await run(...args)).stderr.trimEnd();
    const all = "no terminal to ask on, so these flags are missing:";
    assert.equal(await missing(), `${all} --target KIND/NAME, --field PATH=SECRET/KEY`);
    assert.equal(await missing("--target", "HarborCluster/harbor", "--path", ACCESS_KEY), `${all} --secret, --key`);
  });

  it("proposes the reference to a Secret that the kind has", async () => {
    await applyObjects(team.api, [withReference(team.namespace)]);
    const { stdout, stderr, code } = await flags(
      "spec.template.spec.containers[name=app].env[name=A].value",
      "bucket",
      "host",
      "Deployment/app",
    );
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      /# Deployment can read the Secret itself: set .*valueFrom\.secretKeyRef, and remove this field\.\n/,
    );
  });

  it("asks on a terminal for what is missing, and prints the binding alone to standard output", async () => {
    const file = join(folder, "asked.yaml");
    const kubeconfig = controlPlane().kubeconfigFile;
    const { screen, code } = await onTerminal(["init", "--kubeconfig", kubeconfig, "-n", team.namespace], file, [
      // Enter is ignored until the list matches the text, so each step waits for a list that only the whole text has.
      { shows: /kind:/, types: "harborclu" },
      { shows: /kind: harborclu\s+❯ HarborCluster\.goharbor\.io\s/, types: "\r" },
      { shows: /❯ harbor\s/, types: "\r" },
      { shows: /field:/, types: "accesskey" },
      { shows: /field: accesskey\s+❯ spec\.storage\.spec\.s3\.accesskey\s/, types: "\r" },
      { shows: /❯ bucket\s/, types: "\r" },
      { shows: /key of Secret bucket:/, types: "access" },
      { shows: /bucket: access\r\n❯ accessKeyID\r\n\r\n/, types: "\r" },
      { shows: /❯ print the binding/, types: "\r" },
    ]);
    assert.equal(code, 0, screen);
    const [binding] = objectsOf(await readFile(file, "utf8"));
    assert.deepEqual(binding.spec, {
      sources: [{ name: "bucket", secret: { name: "bucket" } }],
      targets: [
        {
          apiVersion: "goharbor.io/v1beta1",
          kind: "HarborCluster",
          name: "harbor",
          fields: [{ path: ACCESS_KEY, from: { source: "bucket", key: "accessKeyID" } }],
        },
      ],
    });
  });

  it("stops at Ctrl+C without a stack trace, and writes nothing", async () => {
    const file = join(folder, "stopped.yaml");
    const args = ["init", "--kubeconfig", controlPlane().kubeconfigFile, "-n", team.namespace];
    const { screen, code } = await onTerminal(args, file, [{ shows: /kind:/, types: "\u0003" }]);
    assert.equal(code, 1);
    assert.match(screen, /stopped; nothing was written/);
    assert.doesNotMatch(screen, /^\s+at /m);
    assert.equal(await readFile(file, "utf8"), "");
  });
});

const withReference = (namespace: string): object => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "app", namespace },
  spec: {
    replicas: 0,
    selector: { matchLabels: { app: "app" } },
    template: {
      metadata: { labels: { app: "app" } },
      spec: { containers: [{ name: "app", image: "app", env: [{ name: "A", value: "old" }] }] },
    },
  },
});
