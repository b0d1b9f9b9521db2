/**
 * The example samples/vault, which `npm start -- --vault` shows with a real Vault server: a value in Vault reaches a Secret, a custom
 * resource and a Deployment, also after a rotation, and stays there while Vault is sealed.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ControlPlane } from "../test/control-plane/control-plane.ts";
import { install } from "../test/control-plane/install.ts";
import { vaultProgram } from "../test/control-plane/vault/program.ts";
import { startVault, type Vault } from "../test/control-plane/vault.ts";
import { Api } from "../test/controller/api.ts";
import {
  apply,
  applyHarborKind,
  bold,
  chapter,
  compared,
  decoded,
  dim,
  harborsIn,
  masked,
  passed,
  row,
  type Sample,
  type Stage,
  s3Of,
  say,
  sayWhatNext,
  seconds,
  showFile,
  showList,
  startController,
  untilHolds,
  waitFor,
} from "./story.ts";

const SAMPLE: Sample = { folder: "vault", namespace: "vault-registry", binding: "s3" };
const HARBORS = harborsIn(SAMPLE);
const DEPLOYMENTS = `/apis/apps/v1/namespaces/${SAMPLE.namespace}/deployments`;
const SECRET = `/api/v1/namespaces/${SAMPLE.namespace}/secrets/bucket`;
const ROTATIONS = 3;
const POLICY = ["data", "metadata"]
  .map((below) => `path "kv/${below}/${SAMPLE.namespace}/*" { capabilities = ["read"] }`)
  .join("\n");

interface Keys {
  accessKeyID: string;
  secretAccessKey: string;
  host: string;
  port: number;
}

export async function showVault(stage: Stage): Promise<void> {
  say(bold("Inlay with Vault on a local control plane"), "");
  // The first run builds Vault, which takes minutes, and prints its progress.
  await vaultProgram();
  const cluster = await stage.startControlPlane();
  const api = new Api(cluster);
  passed("etcd, kube-apiserver, controller-manager, scheduler and KWOK are running");
  const vault = await startVault({ tls: true });
  stage.onStop(() => vault.stop());
  await vault.enableKv("kv");
  passed(`Vault is running at ${vault.address}, with a KV version 2 secrets engine at kv`);
  await install(cluster);
  await startController(cluster, "--config", await writeVaultConfig(cluster, vault));
  passed("CRDs, policies and roles are installed, and the controller is running");

  chapter("1. Set up Vault: Kubernetes auth, a policy, a role and the first keys", "samples/vault/README.md");
  const first = keysOf("AKIAEXAMPLENOTAKEY01");
  await setUp(vault, cluster);
  await put(vault, first);
  row("policy", `may read kv/${SAMPLE.namespace}/*`);
  row("role", `for the ServiceAccount ${SAMPLE.namespace}/inlay, with tokens for the audience vault`);
  for (const [key, value] of Object.entries(first)) row(key, masked(`${value}`));

  chapter("2. A VaultConnection says where Vault is, and what bindings may read", "samples/vault/04-connection.yaml");
  await applyWithConnection(cluster, vault);
  const inNamespace = `--namespace=${SAMPLE.namespace}`;
  await cluster.kubectl("wait", "--for=condition=Ready", "vaultconnection/vault", inNamespace, "--timeout=60s");
  await showFile(SAMPLE, "04-connection");
  await showList(cluster, SAMPLE, "vaultconnections");

  chapter("3. A SecretBinding copies the values, and restarts a Deployment", "samples/vault/05-binding.yaml");
  await showFile(SAMPLE, "05-binding");
  await apply(cluster, SAMPLE, "05-binding");
  await waitFor(cluster, SAMPLE, "condition=RolledOut");
  await cluster.kubectl("rollout", "status", "deployment/uploader", `--namespace=${SAMPLE.namespace}`);
  await compare(api, first, "the value in Vault");
  await showList(cluster, SAMPLE, "secretbindings");

  chapter("4. The keys in Vault change");
  const times: Times[] = [];
  let last = first;
  for (let round = 1; round <= ROTATIONS; round++) {
    last = keysOf(`AKIAEXAMPLEROTATED0${round}`);
    times.push(await rotate(api, vault, last));
    await waitFor(cluster, SAMPLE, `jsonpath={.status.rollout.revision}=${round}`);
  }
  await compare(api, last, "the new value in Vault");
  const listed = (of: (each: Times) => number) => times.map((each) => of(each).toFixed(0)).join(", ");
  say(
    `  The new key reached the HarborCluster ${listed(({ field }) => field)} ms after the change in Vault, in ${ROTATIONS} rotations.`,
  );
  say(
    `  The Deployment restarted once for each rotation, after ${listed(({ restart }) => restart)} ms. Inlay polls Vault every second.`,
  );

  chapter("5. Vault is sealed, then unsealed");
  await vault.seal();
  await waitFor(cluster, SAMPLE, 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}=VaultSealed');
  row("the binding", `reports VaultSealed  ${dim(`${seconds()} s`)}`);
  await compare(api, last, "the value before");
  await vault.unseal();
  await waitFor(cluster, SAMPLE, "condition=Ready");
  row("the binding", `is ready again, and nothing restarted  ${dim(`${seconds()} s`)}`);

  const token = await writeToken(vault);
  const curl = `curl -fsS --cacert "$VAULT_CACERT" -H "X-Vault-Token: $VAULT_TOKEN"`;
  const data = JSON.stringify({ data: keysOf("AKIAEXAMPLENOTAKEY02") });
  sayWhatNext(
    cluster,
    [`VAULT_ADDR=${vault.address}`, `VAULT_CACERT=${caFile(vault)}`, `VAULT_TOKEN=$(cat ${token})`],
    [
      "kubectl describe sb s3 -n vault-registry",
      `${curl} "$VAULT_ADDR/v1/kv/data/vault-registry/s3" --data '${data}'`,
      "kubectl get harborcluster harbor -n vault-registry -o jsonpath='{.spec.storage.spec.s3.accesskey}'",
    ],
  );
}

/** Sets up Vault for the sample, and applies all of it but the binding. Inlay need not run. */
export async function prepareVaultSample(cluster: ControlPlane, vault: Vault): Promise<void> {
  await setUp(vault, cluster);
  await put(vault, keysOf("AKIAEXAMPLENOTAKEY01"));
  await applyWithConnection(cluster, vault);
}

/** Applies all of the sample but the binding. */
async function applyWithConnection(cluster: ControlPlane, vault: Vault): Promise<void> {
  await applyHarborKind(cluster);
  await apply(cluster, SAMPLE, "00-namespace", "01-account", "02-harborcluster", "03-workload", "04-connection");
  await connect(cluster, vault);
}

/** Returns the file with the root token, which only this user may read. */
export async function writeToken(vault: Vault): Promise<string> {
  const file = join(vault.folder, "root-token");
  await writeFile(file, vault.rootToken, { mode: 0o600 });
  return file;
}

export const caFile = ({ folder }: Vault) => join(folder, "ca.crt");

const keysOf = (accessKeyID: string): Keys => ({
  accessKeyID,
  secretAccessKey: `not/a/real/secret/key/of/${accessKeyID}`,
  host: "s3.example.com",
  port: 9000,
});

/** Lists the server in the configuration of the controller. */
export async function writeVaultConfig(cluster: ControlPlane, { address }: Vault): Promise<string> {
  const file = join(cluster.folder, "inlay-config.yaml");
  const [apiVersion, kind] = ["config.inlay.dev/v1alpha1", "ControllerConfiguration"];
  await writeFile(file, JSON.stringify({ apiVersion, kind, vault: { addresses: [new URL(address).host] } }));
  return file;
}

/** Does the same as the four calls in samples/vault/README.md. */
async function setUp(vault: Vault, cluster: ControlPlane): Promise<void> {
  await vault.enableKubernetesAuth(cluster);
  const role = `inlay-${SAMPLE.namespace}`;
  await vault.writePolicy(role, POLICY);
  await vault.writeKubernetesRole(role, {
    accounts: ["inlay"],
    namespaces: [SAMPLE.namespace],
    audience: "vault",
    policies: [role],
  });
}

/** Writes the address and the CA of this server into the connection of the sample. */
async function connect(cluster: ControlPlane, vault: Vault): Promise<void> {
  await writeFile(caFile(vault), vault.ca);
  const inNamespace = `--namespace=${SAMPLE.namespace}`;
  await cluster.kubectl("create", "configmap", "vault-ca", inNamespace, `--from-file=ca.crt=${caFile(vault)}`);
  const patch = JSON.stringify({ spec: { address: vault.address } });
  await cluster.kubectl("patch", "vaultconnection/vault", inNamespace, "--type=merge", `--patch=${patch}`);
}

const put = (vault: Vault, data: Keys) => vault.api("POST", `kv/data/${SAMPLE.namespace}/s3`, { data });

interface Times {
  field: number;
  restart: number;
}

/** Writes keys to Vault. Returns the milliseconds until the HarborCluster has the new key, and until the Deployment restarts. */
async function rotate(api: Api, vault: Vault, keys: Keys): Promise<Times> {
  const { generation } = (await api.get(`${DEPLOYMENTS}/uploader`)).metadata;
  const from = performance.now();
  const [field, restart] = await Promise.all([
    timed(untilHolds(api, HARBORS, (harbor) => s3Of(harbor).accesskey === keys.accessKeyID, SAMPLE)),
    timed(untilHolds(api, DEPLOYMENTS, ({ metadata }) => metadata.generation > generation, SAMPLE)),
    put(vault, keys),
  ]);
  return { field, restart };

  async function timed(seen: Promise<unknown>): Promise<number> {
    await seen;
    return performance.now() - from;
  }
}

/** Prints whether the Secret and the HarborCluster have the key. */
async function compare(api: Api, { accessKeyID }: Keys, name: string): Promise<void> {
  const [{ data }, harbor] = await Promise.all([api.get(SECRET), api.get(`${HARBORS}/harbor`)]);
  row("Secret", compared(decoded(data.accessKeyID), accessKeyID, name));
  row("HarborCluster", compared(s3Of(harbor).accesskey, accessKeyID, name));
}
