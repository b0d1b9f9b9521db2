/**
 * Installs the shipped compositions/vault-sync-status with a real Vault for all tests of a file, and creates VaultSyncStatuses in
 * namespaces that permit them.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import type { Vault } from "../control-plane/vault.ts";
import { untilMay } from "./access.ts";
import { type AnyObject, Api, unlessGone } from "./api.ts";
import { COMPOSITIONS } from "./compositions.ts";
import { eventually } from "./eventually.ts";
import { applyFile, applyObjects, deleteFile, objectsIn, pathOf } from "./manifests.ts";
import { CONTROLLER } from "./requests.ts";
import { createNamespace, type TestNamespace } from "./test-namespace.ts";
import { MOUNT } from "./vault-team.ts";
import { Workloads } from "./workloads.ts";

const root = join(import.meta.dirname, "..", "..");
const FOLDER = join(root, "compositions", "vault-sync-status");
const [CRD, ACCOUNT, COMPOSITION, POLICY] = ["crd", "account.yaml", "composition.yaml", "optional/policy.yaml"].map(
  (name) => join(FOLDER, name),
) as [string, string, string, string];
const MANIFEST = join(root, "deploy", "manifests", "optional", "compositions.yaml");
/** The policy that the operator of VaultSyncStatus needs, without paths that it may not read. */
const READS_METADATA = `path "+/metadata/*" { capabilities = ["read", "list"] }
path "+/metadata/denied/*" { capabilities = ["deny"] }`;
const WATCH_SECONDS = 300;
const HOME = "vault-sync";
/** The account of its bindings. */
export const INLAY = `system:serviceaccount:${HOME}:inlay`;

export const GROUP = "stable.example.com";
export const API_VERSION = `${GROUP}/v1`;
export const PLURAL = "vaultsyncstatus";
export const POLICY_FILE = POLICY;
/** The fields that the operator's users write into a new object. */
export const PLACEHOLDER = "0000-00-00T00:00:00.000000000Z";

/** The objects of the connection, as the page creates them. */
export const connectionTo = (address: string, token: string): AnyObject[] => [
  { apiVersion: "v1", kind: "Secret", metadata: { name: "vault-token", namespace: HOME }, stringData: { token } },
  {
    apiVersion: "inlay.dev/v1alpha1",
    kind: "VaultConnection",
    metadata: { name: "vault", namespace: HOME },
    spec: { address, auth: { token: { secret: { name: "vault-token", key: "token" } } }, paths: [`${MOUNT}/*`] },
  },
];

/** Installs everything. Vault is read every second. */
export async function installVaultSync(vault: Vault): Promise<void> {
  const api = new Api(controlPlane());
  await vault.writePolicy("vault-sync", READS_METADATA);
  const token = await vault.createToken(["vault-sync"]);
  for (const file of [MANIFEST, CRD, ACCOUNT]) await applyFile(api, file);
  await untilMay(COMPOSITIONS, {
    verb: "use",
    group: "inlay.dev",
    resource: "vaultconnections",
    name: "vault",
    namespace: HOME,
  });
  await untilMay(CONTROLLER, {
    verb: "impersonate",
    resource: "serviceaccounts",
    name: "inlay-compositions",
    namespace: "inlay-system",
  });
  const [composition] = await objectsIn(COMPOSITION);
  composition.spec.bindings[0].base.spec.sources[0].vault.refresh = "1s";
  await applyObjects(api, [...connectionTo(vault.address, token), composition]);
  // The API server serves a new kind only after a moment. This request retries until then, which a watch does not do.
  await api.get(`/apis/${API_VERSION}/${PLURAL}`);
}

/** Removes everything by force, because no controller may run. */
export async function removeVaultSync(): Promise<void> {
  const api = new Api(controlPlane());
  const [composition] = await objectsIn(COMPOSITION);
  const path = await pathOf(api, composition);
  await api.remove(path);
  await api.merge(path, { metadata: { finalizers: null } }).catch(unlessGone);
  const bindings = `/apis/inlay.dev/v1alpha1/namespaces/${HOME}/secretbindings`;
  await api.remove(bindings);
  for (const { metadata } of (await api.get(bindings)).items)
    await api.merge(`${bindings}/${metadata.name}`, { metadata: { finalizers: null } }).catch(unlessGone);
  for (const file of [POLICY, ACCOUNT, MANIFEST]) await deleteFile(api, file);
  await api.remove(`/api/v1/namespaces/${HOME}`);
  await eventually(async () => assert.equal(await api.find(`/api/v1/namespaces/${HOME}`), undefined));
}

/** The value of `reach` in the composition. */
export async function setReach(api: Api, reach: "ClaimNamespace" | "Cluster"): Promise<void> {
  const [composition] = await objectsIn(COMPOSITION);
  await api.merge(await pathOf(api, composition), { spec: { reach } });
}

/** Creates a namespace that permits the composition, with a folder in Vault. */
export class SyncTeam {
  readonly team: TestNamespace;
  readonly shop: Workloads;
  readonly #vault: Vault;

  private constructor(vault: Vault, team: TestNamespace) {
    this.#vault = vault;
    this.team = team;
    this.shop = new Workloads(team);
  }

  static async create(vault: Vault): Promise<SyncTeam> {
    const team = await createNamespace({ account: false, rules: [], controller: false });
    const { namespace, api } = team;
    await api.create(team.path("rbac.authorization.k8s.io/v1", "rolebindings"), {
      metadata: { name: "inlay-rollouts" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "inlay-rollouts" },
      subjects: [{ kind: "ServiceAccount", name: "inlay", namespace: HOME }],
    });
    await untilMay(INLAY, { verb: "patch", group: "apps", resource: "deployments", namespace });
    return new SyncTeam(vault, team);
  }

  /** Writes another version of a path. Returns the time that Vault reports. */
  async change(path: string): Promise<string> {
    const { data } = await this.#vault.api("POST", `${MOUNT}/data/${this.#in(path)}`, {
      data: { version: `${Date.now()}` },
    });
    return data.created_time;
  }

  /** Creates an object that restarts the Deployment of its name for the path of its name. */
  sync(name: string, timeStamp: string | undefined, changes: object = {}): Promise<AnyObject> {
    return this.team.api.create(this.team.path(API_VERSION, PLURAL), {
      apiVersion: API_VERSION,
      kind: "VaultSyncStatus",
      metadata: { name },
      spec: { ...this.spec(name), timeStamp, ...changes },
    });
  }

  /** The status of such an object, without its time stamp. */
  spec(name: string): object {
    return {
      deployName: name,
      deployNamespace: this.team.namespace,
      secretEngine: MOUNT,
      secretPath: this.#in(name),
    };
  }

  path(name: string): string {
    return `${this.team.path(API_VERSION, PLURAL)}/${name}`;
  }

  get(name: string): Promise<AnyObject> {
    return this.team.api.get(this.path(name));
  }

  /** Waits until the object has that status, and that time stamp if one is given. Returns the object. */
  async until(name: string, status: string, timeStamp?: string, withinMs?: number): Promise<AnyObject> {
    return eventually(async () => {
      const found = await this.get(name);
      assert.equal(found.status?.vault_sync?.SyncStatus, status, JSON.stringify(found.status));
      if (timeStamp !== undefined) assert.equal(found.spec.timeStamp, timeStamp);
      return found;
    }, withinMs);
  }

  /** Collects each status of its objects until the signal aborts, with the mistakes in it. */
  async statuses(signal: AbortSignal): Promise<Set<string>> {
    const shown = new Set<string>();
    try {
      for await (const { object } of this.team.api.watch(this.team.path(API_VERSION, PLURAL), WATCH_SECONDS, signal)) {
        const { SyncStatus, Message, Rollout } = object.status?.vault_sync ?? {};
        if (SyncStatus !== undefined) shown.add(SyncStatus === "Error" ? `Error: ${Message}; ${Rollout}` : SyncStatus);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return shown;
  }

  #in(path: string): string {
    return path.startsWith("denied/") ? path : `${this.team.namespace}/${path}`;
  }
}
