/** `inlay validate --cluster` on a real API server: schemas, selected objects, connections and grants of the cluster count. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { controlPlane } from "../control-plane/shared.ts";
import { inlay } from "../controller/cli.ts";
import { accessKeySpec, createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

interface Found {
  code: number;
  reasons: string[];
}

describe("inlay validate --cluster", () => {
  let folder: string;
  let team: TestNamespace;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "inlay-validate-"));
    team = await createNamespace({ account: false, rules: [], controller: false });
  });
  after(() => rm(folder, { recursive: true }));

  /** Validates one binding. */
  async function found(spec: object, ...flags: string[]): Promise<Found> {
    const metadata = { name: "b", namespace: team.namespace };
    const file = join(folder, "b.yaml");
    await writeFile(file, stringify({ apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", metadata, spec }));
    const args = ["validate", "-f", file, "-o", "json", "--cluster", ...flags];
    const { stdout, stderr, code } = await inlay(controlPlane().kubeconfigFile, ...args);
    assert.equal(stderr, "");
    const { errors } = JSON.parse(stdout);
    return { code, reasons: errors.map(({ severity, reason }: Record<string, string>) => `${severity} ${reason}`) };
  }

  const harbor = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster" };
  const field = (path: string) => ({ path, from: { source: "bucket", key: "accessKeyID" } });
  const writing = (target: object, path = "spec.storage.spec.s3.accesskey") => ({
    sources: [{ secret: { name: "bucket" } }],
    targets: [{ ...target, fields: [field(path)] }],
  });

  it("checks paths against the schema that the cluster publishes, of CRDs and built-in kinds", async () => {
    assert.deepEqual(await found(accessKeySpec()), { code: 0, reasons: [] });
    const wrong = writing({ ...harbor, name: "harbor" }, "spec.storge");
    assert.deepEqual(await found(wrong), { code: 1, reasons: ["error UnknownField"] });
    const service = { apiVersion: "v1", kind: "Service", name: "a" };
    assert.deepEqual(await found(writing(service, "spec.clusterIp")), { code: 1, reasons: ["error UnknownField"] });
    assert.deepEqual(await found(writing(service, "spec.externalName")), { code: 0, reasons: [] });
  });

  it("warns of a kind that is not served, and of a selector until an object matches", async () => {
    const unknown = writing({ apiVersion: "example.com/v1", kind: "Nothing", name: "a" });
    assert.deepEqual(await found(unknown), { code: 0, reasons: ["warning KindNotFound"] });
    const selecting = writing({ ...harbor, selector: { names: ["har*"] } });
    assert.deepEqual(await found(selecting), { code: 0, reasons: ["warning TargetNotFound"] });
    assert.deepEqual((await found(selecting, "--strict")).code, 1);
    await team.harbor("harbor");
    assert.deepEqual(await found(selecting), { code: 0, reasons: [] });
  });

  it("warns of connections and grants until they exist", async () => {
    const spec = {
      sources: [{ name: "v", vault: { connection: { name: "vault" }, data: { mount: "kv", path: "a" } } }],
      targets: [
        {
          ...harbor,
          name: "harbor",
          fields: [{ path: "spec.storage.spec.s3.accesskey", from: { source: "v", key: "a" } }],
        },
      ],
    };
    assert.deepEqual(await found(spec), { code: 0, reasons: ["warning ConnectionNotFound"] });
    const granted = {
      ...writing({ ...harbor, name: "harbor" }),
      sources: [{ secret: { name: "bucket", granted: true } }],
    };
    assert.deepEqual(await found(granted), { code: 0, reasons: ["warning NotGranted"] });
    const path = team.path("inlay.dev/v1alpha1", "secretgrants");
    const from = [{ namespace: team.namespace }];
    const type = { apiVersion: "inlay.dev/v1alpha1", kind: "SecretGrant" };
    const to = [{ kind: "Secret", name: "bucket" }];
    await team.api.create(path, { ...type, metadata: { name: "g" }, spec: { from, to } });
    assert.deepEqual(await found(granted), { code: 0, reasons: [] });
  });
});
