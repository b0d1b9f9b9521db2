/**
 * Loads the server's address, TLS material and request headers from a kubeconfig or the pod's account. Reads files
 * itself. Only exec plugins and the like need client-node, which takes 55 MB.
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { createSecureContext } from "node:tls";
import { parse } from "yaml";
import { whyUnreadable } from "../apimachinery/file-errors.ts";
import { whyTooLarge } from "./file-size.ts";

interface ClusterAccess {
  server: string;
  ca?: Buffer | undefined;
  cert?: Buffer | undefined;
  key?: Buffer | undefined;
  servername?: string | undefined;
  token?: string | undefined;
  /** The file with the current token. */
  tokenFile?: string | undefined;
  /** The default namespace. */
  namespace?: string | undefined;
  /** Set for a user with more than files and tokens, such as an exec plugin. A plugin may ask for the cluster too. */
  needsClient?: { user: Entry; cluster: Entry } | undefined;
}

type Entry = Record<string, unknown>;

/** Finds a cluster, user or context, and makes its paths absolute. */
type Find = (list: "clusters" | "users" | "contexts", name: unknown) => Entry | undefined;

/** More than any kubeconfig, certificate or token. */
const MAX_MIB = 16;
const PATHS = ["certificate-authority", "client-certificate", "client-key", "tokenFile"];
/** The keys of a user that need only files. */
const PLAIN = ["token", "tokenFile", "client-certificate", "client-certificate-data", "client-key", "client-key-data"];

/** Throws an Error that says which file is invalid, and why. */
async function readKubeconfigs(files: readonly string[]): Promise<ClusterAccess> {
  const configs = await Promise.all(files.map(async (file) => ({ file, config: await load(file) })));
  const whose = files.join(delimiter);
  const find: Find = (list, name) => {
    const key = list.slice(0, -1);
    for (const { file, config } of configs) {
      const entries = Array.isArray(config[list]) ? (config[list] as (Entry | null)[]) : [];
      const entry = entries.find((each) => name !== undefined && each?.["name"] === name)?.[key];
      if (entry) return withAbsolutePaths(entry as Entry, dirname(file));
    }
    return undefined;
  };
  const current = configs.map(({ config }) => config["current-context"]).find((name) => text(name) !== undefined);
  const context = find("contexts", current);
  const cluster = find("clusters", context?.["cluster"]);
  const server = text(cluster?.["server"]);
  if (cluster === undefined || server === undefined) {
    const why =
      current === undefined ? "it sets no current-context" : "its current-context has no cluster with a server";
    throw new Error(
      `${whose} names no cluster: ${why}; list its contexts with kubectl config get-contexts, and choose one with kubectl config use-context`,
    );
  }
  const user = find("users", context?.["user"]) ?? {};
  refuseUnsafe(whose, cluster, user);
  const [ca, cert, key] = await Promise.all([
    content(cluster, "certificate-authority"),
    content(user, "client-certificate"),
    content(user, "client-key"),
  ]);
  return {
    server,
    ca,
    cert,
    key,
    servername: text(cluster["tls-server-name"]),
    token: text(user["token"]),
    tokenFile: text(user["tokenFile"]),
    namespace: text(context?.["namespace"]),
    needsClient: Object.keys(user).every((each) => PLAIN.includes(each)) ? undefined : { user, cluster },
  };
}

/** Throws an Error that says which file can't be read. */
async function readNamed(what: string, path: string): Promise<Buffer> {
  const why = whyTooLarge(path, MAX_MIB);
  if (why !== undefined) throw new Error(`can't read ${what} ${path}: ${why}`);
  try {
    return await readFile(path);
  } catch (error) {
    throw new Error(`can't read ${what} ${path}: ${whyUnreadable(error) ?? (error as { code?: string }).code}`);
  }
}

/** Refuses options that are unsafe, or that Inlay does not support. */
function refuseUnsafe(whose: string, cluster: Entry, user: Entry): void {
  const unverified = `${whose} has insecure-skip-tls-verify, but Inlay sends values of Secrets and always verifies the server; set the cluster's certificate-authority instead`;
  const proxied = `${whose} has a proxy-url, but Inlay supports no proxy; run it where it can reach the API server directly`;
  const impersonating = `${whose} impersonates a user (as), but Inlay itself impersonates the account of each binding; use credentials without impersonation`;
  if (cluster["insecure-skip-tls-verify"]) throw new Error(unverified);
  if (cluster["proxy-url"]) throw new Error(proxied);
  if (user["as"]) throw new Error(impersonating);
}

async function load(file: string): Promise<Entry> {
  const content = (await readNamed("the kubeconfig", file)).toString();
  let config: unknown;
  try {
    config = parse(content, { logLevel: "error" });
  } catch {
    // The parser's message quotes the line.
  }
  if (typeof config !== "object" || config === null) {
    const why = content.trim() === "" ? "it is empty" : "it is not YAML";
    throw new Error(
      `${file} is not a kubeconfig: ${why}; correct it, or choose another file with --kubeconfig or KUBECONFIG`,
    );
  }
  return config as Entry;
}

/** The base64 data in the entry, or the content of the named file. */
async function content(entry: Entry, key: string): Promise<Buffer | undefined> {
  const [data, path] = [text(entry[`${key}-data`]), text(entry[key])];
  if (data !== undefined) return Buffer.from(data, "base64");
  return path === undefined ? undefined : readNamed(`the ${key}`, path);
}

function withAbsolutePaths(entry: Entry, folder: string): Entry {
  const paths = PATHS.filter((key) => text(entry[key]) !== undefined);
  return { ...entry, ...Object.fromEntries(paths.map((key) => [key, resolve(folder, entry[key] as string)])) };
}

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);

type Headers = Record<string, string>;

export interface Credentials {
  server: URL;
  tls: Pick<ClusterAccess, "ca" | "cert" | "key" | "servername">;
  /** The headers that authenticate a request. Tokens from files and exec plugins are renewed. */
  headers(): Promise<Headers>;
  /** The default namespace. */
  namespace?: string;
}

/** The environment in which credentials are searched. */
export interface Surroundings {
  env: Record<string, string | undefined>;
  home: string;
  /** The folder with the token of the pod's account. */
  account: string;
  now(): number;
}

const OURS: Surroundings = {
  env: process.env,
  home: homedir(),
  account: "/var/run/secrets/kubernetes.io/serviceaccount",
  now: () => performance.now(),
};

/**
 * How long headers are reused. The kubelet replaces a pod's token at four fifths of its lifetime, long before it
 * expires.
 */
const HEADERS_LIVE_MS = 30_000;

/**
 * Loads `kubeconfig`, or else what kubectl would use: `$KUBECONFIG`, `~/.kube/config`, the pod's account. Throws an
 * Error that says what is missing.
 */
export async function loadCredentials(kubeconfig?: string, around: Surroundings = OURS): Promise<Credentials> {
  const files = kubeconfig === undefined ? usualFiles(around) : [kubeconfig];
  const access = files.length === 0 ? await podAccess(around) : await readKubeconfigs(files);
  const { ca, servername, namespace } = access;
  const { headers, cert, key } = await authentication(access, around);
  const tls = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }), ...(servername && { servername }) };
  const whose = files.length === 0 ? "the pod's account" : files.join(delimiter);
  checkTls(tls, whose);
  return { server: addressOf(access.server, whose), tls, headers, ...(namespace && { namespace }) };
}

/** Only https: Inlay sends a token and values of Secrets to the server. */
function addressOf(server: string, whose: string): URL {
  const url = URL.parse(server);
  if (url === null || url.host === "")
    throw new Error(`the server of ${whose} is not a URL; write it as https://host:6443`);
  if (url.protocol === "https:") return url;
  throw new Error(
    `the server of ${whose} is not an https URL; Inlay sends values of Secrets, so it uses only TLS: write https://`,
  );
}

/** The headers or the client certificate that authenticate Inlay. */
async function authentication(
  access: ClusterAccess,
  around: Surroundings,
): Promise<Pick<ClusterAccess, "cert" | "key"> & Pick<Credentials, "headers">> {
  const { token, tokenFile, needsClient } = access;
  if (needsClient !== undefined) {
    const ask = await clientFor(needsClient);
    const first = await ask();
    return { ...access, ...first, headers: renewed(first.headers, async () => (await ask()).headers, around) };
  }
  if (tokenFile === undefined) {
    // One object for all requests: each open stream keeps its headers, and a token is long.
    const constant = bearer(token);
    return { ...access, headers: async () => constant };
  }
  let last = bearer(await readToken(tokenFile));
  // While the file is being replaced, the last token stays in use.
  const ask = async () => {
    last = await readToken(tokenFile).then(bearer, () => last);
    return last;
  };
  return { ...access, headers: renewed(last, ask, around) };
}

function usualFiles({ env, home }: Surroundings): string[] {
  const listed = (env["KUBECONFIG"] ?? "").split(delimiter).filter((file) => file !== "");
  // Like kubectl, which ignores missing files of the list.
  const files = listed.length > 1 ? listed.filter((file) => existsSync(file)) : listed;
  const usual = join(home, ".kube", "config");
  return files.length === 0 && existsSync(usual) ? [usual] : files;
}

async function podAccess({ env, account }: Surroundings): Promise<ClusterAccess> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = env;
  const tokenFile = join(account, "token");
  if (host === undefined || !existsSync(tokenFile)) {
    throw new Error("no cluster is configured: set --kubeconfig or KUBECONFIG, or run in a pod with a service account");
  }
  const ca = await readNamed("the cluster's CA", join(account, "ca.crt"));
  const namespace = await readFile(join(account, "namespace"), "utf8").catch(() => "");
  const server = `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
  return { server, ca, tokenFile, ...(namespace && { namespace: namespace.trim() }) };
}

function bearer(token: string | undefined): Headers {
  return token === undefined ? {} : { Authorization: `Bearer ${token}` };
}

async function readToken(file: string): Promise<string> {
  const token = (await readNamed("the token", file)).toString().trim();
  if (token === "") throw new Error(`the token ${file} is empty`);
  return token;
}

/** Checked here, because OpenSSL would report it at each connection, in unclear words. */
function checkTls(tls: Credentials["tls"], whose: string): void {
  const { ca } = tls;
  if (ca !== undefined && !ca.includes("-----BEGIN"))
    throw new Error(`the CA of ${whose} is not a certificate in PEM; correct certificate-authority-data`);
  try {
    createSecureContext(tls);
  } catch (error) {
    const { code } = error as { code?: string };
    throw new Error(
      `the client certificate or key of ${whose} is not a matching pair in PEM (${code}); correct client-certificate-data and client-key-data, or log in again`,
    );
  }
}

interface Authentication {
  headers: Headers;
  auth?: string;
  cert?: Buffer;
  key?: Buffer;
}

/** Uses client-node, which runs plugins and keeps their credentials until they expire. */
async function clientFor(access: NonNullable<ClusterAccess["needsClient"]>): Promise<() => Promise<Authentication>> {
  const { user, cluster } = access;
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  const name = "current";
  const context = { cluster: name, user: name };
  const lists = { clusters: [{ name, cluster }], users: [{ name, user }], contexts: [{ name, context }] };
  config.loadFromString(JSON.stringify({ ...lists, "current-context": name }));
  return async () => {
    const options: Authentication = { headers: {} };
    try {
      await config.applyToHTTPSOptions(options);
    } catch (error) {
      // The error's message may contain the plugin's output, or quote the token.
      const { code, name } = error as { code?: string; name?: string };
      const message = `the kubeconfig's exec or auth plugin gave no credentials (${code ?? name}); run it by hand to see why`;
      throw new Error(message);
    }
    const { auth } = options;
    if (auth) options.headers["Authorization"] = `Basic ${Buffer.from(auth).toString("base64")}`;
    return options;
  };
}

/** Returns `first`, and asks again when it is old. */
function renewed(first: Headers, ask: () => Promise<Headers>, { now }: Surroundings): () => Promise<Headers> {
  let current = Promise.resolve(first);
  let until = now() + HEADERS_LIVE_MS;
  return () => {
    if (now() > until) {
      until = now() + HEADERS_LIVE_MS;
      current = ask();
      // Callers that wait for them see the failure; the next request asks again.
      current.catch(() => {
        until = 0;
      });
    }
    return current;
  };
}
