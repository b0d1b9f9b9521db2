/** Creates namespaces, Secrets, HarborClusters, Deployments and bindings by the thousand for the measurements. */
import { harborCluster } from "../test/controller/harbor.ts";
import { deployment } from "../test/controller/workloads.ts";
import type { AnyObject, Client } from "./cluster.ts";
import { atOnce } from "./cluster.ts";

const WIDTH = 50;

/** A namespace with the account `inlay` and the permissions for bindings of the benchmark. */
export async function makeNamespace(client: Client, name: string): Promise<void> {
  await client.send("POST", "/api/v1/namespaces", { metadata: { name } });
  await client.send("POST", `/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: "inlay" } });
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${name}`;
  await client.send("POST", `${rbac}/roles`, {
    metadata: { name: "inlay" },
    rules: [
      { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch"] },
      { apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs: ["get", "list", "watch", "patch"] },
      {
        apiGroups: ["apps"],
        resources: ["deployments", "statefulsets", "daemonsets"],
        verbs: ["get", "list", "watch", "patch"],
      },
    ],
  });
  await client.send("POST", `${rbac}/rolebindings`, {
    metadata: { name: "inlay" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "inlay" },
    subjects: [{ kind: "ServiceAccount", name: "inlay", namespace: name }],
  });
}

export const secretPath = (namespace: string, name = "") =>
  `/api/v1/namespaces/${namespace}/secrets${name && `/${name}`}`;
export const harborPath = (namespace: string, name = "") =>
  `/apis/goharbor.io/v1beta1/namespaces/${namespace}/harborclusters${name && `/${name}`}`;
export const deploymentPath = (namespace: string, name = "") =>
  `/apis/apps/v1/namespaces/${namespace}/deployments${name && `/${name}`}`;
/** The path of one binding, or of all. */
export const bindingPath = (namespace = "", name = "") =>
  `/apis/inlay.dev/v1alpha1/${namespace && `namespaces/${namespace}/`}secretbindings${name && `/${name}`}`;

type NamespaceOf = (i: number) => string;

/** `count` Secrets `s-0`…, or from a later number on, with values of about a kibibyte. */
export async function makeSecrets(
  client: Client,
  namespaceOf: NamespaceOf,
  count: number,
  { from = 0, bytes = 1_000 } = {},
): Promise<void> {
  const rest = "x".repeat(bytes);
  await atOnce(count, WIDTH, (n) => {
    const i = from + n;
    return client.send("POST", secretPath(namespaceOf(i)), {
      metadata: { name: `s-${i}` },
      stringData: { accessKeyID: `key-${i}-0`, rest },
    });
  });
}

/** `count` HarborClusters `h-0`…, or from a later number on, of two kibibytes and additional fields. */
export async function makeHarbors(
  client: Client,
  namespaceOf: NamespaceOf,
  count: number,
  { from = 0, fields = {} } = {},
): Promise<void> {
  await atOnce(count, WIDTH, (n) => {
    const i = from + n;
    const harbor = harborCluster(`h-${i}`) as AnyObject;
    return client.send("POST", harborPath(namespaceOf(i)), { ...harbor, spec: { ...harbor.spec, ...fields } });
  });
}

/** `count` bindings `b-0`…, or from a later number on. */
export async function makeBindings(client: Client, namespaceOf: NamespaceOf, count: number, from = 0): Promise<void> {
  await atOnce(count, WIDTH, (n) => {
    const i = from + n;
    return client.send("POST", bindingPath(namespaceOf(i)), bindingOf(namespaceOf(i), i));
  });
}

/** The binding `b-i` from the Secret `s-i` to the HarborCluster `h-i`. */
export const bindingOf = (namespace: string, i: number) => ({
  apiVersion: "inlay.dev/v1alpha1",
  kind: "SecretBinding",
  metadata: { name: `b-${i}`, namespace },
  spec: {
    sources: [{ name: "bucket", secret: { name: `s-${i}` } }],
    targets: [
      {
        apiVersion: "goharbor.io/v1beta1",
        kind: "HarborCluster",
        name: `h-${i}`,
        fields: [
          { path: "spec.storage.spec.s3.accesskey", from: { source: "bucket", key: "accessKeyID" } },
          { path: "spec.storage.spec.s3.regionendpoint", template: "https://{{bucket.accessKeyID}}.example.com" },
        ],
      },
    ],
  },
});

/** `count` Deployments `d-0`… without pods, which read the Secrets in turns. */
export async function makeDeployments(
  client: Client,
  namespace: string,
  count: number,
  secrets: number,
): Promise<void> {
  await atOnce(count, WIDTH, (i) => {
    const env = { [`s-${i % secrets}`]: ["accessKeyID"] };
    return client.send("POST", deploymentPath(namespace), deployment(`d-${i}`, { env, replicas: 0 }));
  });
}

/** A binding for each of so many Secrets, which restarts its consumers. */
export async function makeRollouts(client: Client, namespace: string, count: number): Promise<void> {
  await atOnce(count, WIDTH, (i) =>
    client.send("POST", bindingPath(namespace), {
      apiVersion: "inlay.dev/v1alpha1",
      kind: "SecretBinding",
      metadata: { name: `r-${i}` },
      spec: { sources: [{ name: "bucket", secret: { name: `s-${i}` } }], rollout: { consumersOf: ["bucket"] } },
    }),
  );
}

/** Deletes all bindings of the cluster, and their finalizers: what they wrote stays. The controller should be stopped. */
export async function dropBindings(client: Client): Promise<void> {
  const { items } = await client.send("GET", bindingPath());
  await atOnce(items.length, WIDTH, async (i) => {
    const { namespace, name, finalizers } = items[i].metadata;
    const path = bindingPath(namespace, name);
    if (finalizers !== undefined) await client.merge(path, { metadata: { finalizers: null } });
    return client.send("DELETE", path);
  });
}

export const accessKeyOf = (object: AnyObject): string | undefined => object.spec.storage.spec.s3.accesskey;
