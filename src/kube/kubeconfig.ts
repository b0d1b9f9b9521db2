/**
 * Reads kubeconfigs: the address, keys and tokens of their current context, also from the files that they name. Of
 * several kubeconfigs, the first with an entry counts, as with kubectl. No message quotes their content.
 */
import { readFile } from "node:fs/promises";
import { delimiter, dirname, resolve } from "node:path";
import { parse } from "yaml";
import { whyUnreadable } from "../apimachinery/file-errors.ts";
import { whyTooLarge } from "./file-size.ts";

export interface ClusterAccess {
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
export async function readKubeconfigs(files: readonly string[]): Promise<ClusterAccess> {
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
export async function readNamed(what: string, path: string): Promise<Buffer> {
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
