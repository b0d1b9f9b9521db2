/** The command lines of a control plane's programs, from their ports and files. */
import { join } from "node:path";
import type { Credentials } from "./credentials.ts";

/** The ports and files of one control plane. */
export interface Place {
  folder: string;
  ports: { etcd: number; etcdPeer: number; apiServer: number };
}

export const certificateFolder = (folder: string) => join(folder, "certificates");

export function etcdFlags({ folder, ports }: Place): string[] {
  const client = `http://127.0.0.1:${ports.etcd}`;
  const peer = `http://127.0.0.1:${ports.etcdPeer}`;
  return [
    `--data-dir=${join(folder, "etcd")}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    "--unsafe-no-fsync",
    // The most that etcd recommends: one after the other, the attacks of the tests write more than its default of 2 GiB.
    "--quota-backend-bytes=8589934592",
    "--log-level=warn",
  ];
}

export function apiServerFlags({ folder, ports }: Place, credentials: Credentials, more: string[]): string[] {
  return [
    `--etcd-servers=http://127.0.0.1:${ports.etcd}`,
    `--secure-port=${ports.apiServer}`,
    "--bind-address=127.0.0.1",
    // Otherwise it looks for the address of a default route, which a machine may lack.
    "--advertise-address=127.0.0.1",
    "--endpoint-reconciler-type=none",
    `--cert-dir=${certificateFolder(folder)}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${credentials.serviceAccountPublicKey}`,
    `--service-account-signing-key-file=${credentials.serviceAccountKey}`,
    `--token-auth-file=${credentials.tokenFile}`,
    "--authorization-mode=RBAC",
    // Both families, so that Services can have pods with loopback addresses, which EndpointSlices of IPv4 may not contain.
    "--service-cluster-ip-range=10.0.0.0/24,fd00:10::/112",
    "--allow-privileged=true",
    ...more,
  ];
}

export function controllerManagerFlags(kubeconfig: string, caFile: string, credentials: Credentials): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    "--leader-elect=false",
    "--secure-port=0",
    "--use-service-account-credentials",
    `--service-account-private-key-file=${credentials.serviceAccountKey}`,
    `--root-ca-file=${caFile}`,
    // A test creates in a second what a cluster creates in an hour.
    "--kube-api-qps=500",
    "--kube-api-burst=1000",
  ];
}

export function schedulerFlags(kubeconfig: string): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    "--leader-elect=false",
    "--secure-port=0",
    "--kube-api-qps=500",
    "--kube-api-burst=1000",
  ];
}

export function kwokFlags(kubeconfig: string, stages: string): string[] {
  return [`--kubeconfig=${kubeconfig}`, `--config=${stages}`, "--manage-all-nodes"];
}
