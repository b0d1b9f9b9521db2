/** A kubeconfig, or the pod's own account, comes in; the server's address, TLS material and request headers go out. */
import type { KubeConfig } from "@kubernetes/client-node";

export interface Credentials {
  server: URL;
  tls: { ca?: Buffer; cert?: Buffer; key?: Buffer; servername?: string };
  /** The headers that authenticate a request; tokens from files and exec plugins are renewed. */
  headers(): Promise<Record<string, string>>;
}

/** How long headers are reused before the kubeconfig's authenticator is asked again. */
const HEADERS_LIVE_MS = 30_000;

/**
 * Loads `kubeconfig`, else what kubectl would use: `$KUBECONFIG`, `~/.kube/config`, the pod's account.
 * Throws an Error that says what is missing.
 */
export async function loadCredentials(kubeconfig?: string): Promise<Credentials> {
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  if (kubeconfig === undefined) config.loadFromDefault();
  else config.loadFromFile(kubeconfig);
  const cluster = config.getCurrentCluster();
  if (!cluster?.server) {
    throw new Error(`${kubeconfig ?? "the kubeconfig"} names no cluster: set its current-context`);
  }
  if (cluster.skipTLSVerify) {
    throw new Error(
      "the kubeconfig has insecure-skip-tls-verify: Inlay carries Secrets and never skips verification; give the cluster's certificate-authority instead",
    );
  }
  const first = await authenticate(config);
  const { ca, cert, key, servername } = first;
  let headers = Promise.resolve(first.headers);
  let renewAt = Date.now() + HEADERS_LIVE_MS;
  return {
    server: new URL(cluster.server),
    tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }), ...(servername && { servername }) },
    headers() {
      if (Date.now() > renewAt) {
        renewAt = Date.now() + HEADERS_LIVE_MS;
        headers = authenticate(config).then((renewed) => renewed.headers);
        // Whoever waits for them is told; the next request asks again.
        headers.catch(() => {
          renewAt = 0;
        });
      }
      return headers;
    },
  };
}

interface Authentication {
  headers: Record<string, string>;
  ca?: Buffer;
  cert?: Buffer;
  key?: Buffer;
  servername?: string;
}

async function authenticate(config: KubeConfig): Promise<Authentication> {
  const options: Authentication & { auth?: string } = { headers: {} };
  await config.applyToHTTPSOptions(options);
  if (options.auth) options.headers["Authorization"] = `Basic ${Buffer.from(options.auth).toString("base64")}`;
  return options;
}
