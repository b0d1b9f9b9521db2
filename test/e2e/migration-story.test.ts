/** Moves a folder of objects of two tools to Inlay as a user does: migrate, validate, rbac, diff and apply. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { applyObjects, objectsOf } from "../controller/manifests.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const program = join(import.meta.dirname, "..", "..", "src", "main.ts");

/** A policy that clones a Secret into a namespace. */
const kyverno = (from: string, to: string) => `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: { name: sync-bucket }
spec:
  generateExisting: true
  rules:
    - name: clone
      match: { any: [{ resources: { kinds: [Namespace], names: [${to}] } }] }
      generate:
        apiVersion: v1
        kind: Secret
        name: bucket
        namespace: "{{request.object.metadata.name}}"
        synchronize: true
        clone: { namespace: ${from}, name: bucket }
`;

/** A Secret from Vault, whose Deployment restarts. */
const vso = (namespace: string) => `
apiVersion: secrets.hashicorp.com/v1beta1
kind: VaultConnection
metadata: { name: vault, namespace: ${namespace} }
spec: { address: "https://vault.example.com:8200" }
---
apiVersion: secrets.hashicorp.com/v1beta1
kind: VaultAuth
metadata: { name: vault, namespace: ${namespace} }
spec:
  vaultConnectionRef: vault
  method: kubernetes
  mount: kubernetes
  kubernetes: { role: app, serviceAccount: inlay, audiences: [vault] }
---
apiVersion: secrets.hashicorp.com/v1beta1
kind: VaultStaticSecret
metadata: { name: database, namespace: ${namespace} }
spec:
  vaultAuthRef: vault
  mount: kv
  type: kv-v2
  path: app/database
  refreshAfter: 60s
  destination: { name: database, create: true, overwrite: true, transformation: { excludeRaw: true } }
  rolloutRestartTargets: [{ kind: Deployment, name: web }]
`;

describe("a folder of Kyverno policies and VaultStaticSecrets", function () {
  this.timeout("5m");
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "inlay-migration-"));
  });
  after(() => rm(folder, { recursive: true }));

  /** Runs `inlay` in the folder, and returns its standard output. */
  async function inlay(code: number, stderr: RegExp, ...args: string[]): Promise<string> {
    const env = { ...process.env, KUBECONFIG: controlPlane().kubeconfigFile };
    const child = spawn(process.execPath, [program, ...args], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
    const [out, err, [exit]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    assert.deepEqual(foundIn(out + err), []);
    assert.match(err, stderr);
    assert.equal(exit, code, `${out}\n${err}`);
    return out;
  }

  /** The objects that the files lead to, by their changes. */
  async function changes(code: number, ...files: string[]): Promise<string[]> {
    const { objects, bindings } = JSON.parse(await inlay(code, /^$/, "diff", ...files, "-o", "json"));
    const all = [...objects, ...bindings.flatMap(({ own, targets }: Changed) => [own, ...targets])];
    return all.map(({ kind, name, change, problem }) => `${kind} ${name}: ${problem?.reason ?? change}`);
  }

  it("moves to Inlay by migrate, validate, rbac, diff and apply, and diff then shows no change", async () => {
    const [team, other] = await Promise.all([newNamespace(), newNamespace()]);
    const value = secretText("bucket");
    const bucket = { metadata: { name: "bucket" }, type: "example.com/bucket", stringData: { key: value } };
    await team.api.create(team.path("v1", "secrets"), { apiVersion: "v1", kind: "Secret", ...bucket });
    await writeFile(join(folder, "policy.yaml"), kyverno(team.namespace, other.namespace));
    await writeFile(join(folder, "vault.yaml"), vso(team.namespace));
    const others = /^\d other objects? .* ignored\n$/;
    const [copies, fromVault] = await Promise.all([
      inlay(0, others, "migrate", "kyverno", "-f", "policy.yaml", "-f", "vault.yaml", "--cluster"),
      inlay(0, others, "migrate", "vso", "-f", "policy.yaml", "-f", "vault.yaml"),
    ]);
    await writeFile(join(folder, "copies.yaml"), copies);
    await writeFile(join(folder, "from-vault.yaml"), fromVault);
    const files = ["-f", "copies.yaml", "-f", "from-vault.yaml"];

    const [checked, permissions] = await Promise.all([
      inlay(0, /^$/, "validate", ...files, "--cluster"),
      inlay(0, /^$/, "rbac", ...files, "--cluster"),
    ]);
    assert.match(checked, /: 0 errors, 0 warnings\n$/);
    await applyObjects(team.api, objectsOf(permissions));
    // The API server may not know the permissions yet.
    await eventually(async () =>
      assert.deepEqual(await changes(1, ...files), [
        "VaultConnection vault: create",
        "SecretBinding bucket: create",
        "Secret bucket: create",
        "SecretBinding database: create",
        "Secret database: Unavailable",
      ]),
    );

    for (const yaml of [copies, fromVault]) await applyObjects(team.api, objectsOf(yaml));
    await team.controller.start();
    await inlay(0, /^$/, "sync", "bucket", "-n", team.namespace, "--wait", "--timeout", "45s");
    const { data, type } = await team.api.get(other.path("v1", "secrets/bucket"));
    assert.deepEqual([data, type], [{ key: Buffer.from(value).toString("base64") }, "example.com/bucket"]);
    const unchanged = ["SecretBinding bucket: none", "Secret bucket: none"];
    assert.deepEqual(await changes(0, "-f", "copies.yaml"), unchanged);

    await inlay(0, /^$/, "suspend", "bucket", "-n", team.namespace);
    await inlay(0, /^$/, "resume", "bucket", "-n", team.namespace);
    assert.deepEqual(await changes(0, "-f", "copies.yaml"), unchanged);

    await writeFile(join(folder, "wrong.yaml"), copies.replace("fields:", "field:"));
    await inlay(2, /^wrong\.yaml:\d+: spec\.targets\[0\]\./, "diff", "-f", "wrong.yaml");
  });
});

interface Changed {
  own: object;
  targets: object[];
}

/** Without an account: `inlay rbac` prints it. */
const newNamespace = (): Promise<TestNamespace> => createNamespace({ account: false, rules: [], controller: false });
