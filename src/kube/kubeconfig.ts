/**
 * Kubeconfigs come in, the access that their current context gives goes out: an address, with the keys and tokens that
 * stand in them or in the files that they name. Of several, the first that says something counts, as with kubectl. No
 * message quotes what stands there.
 */
import { readFile } from "node:fs/promises";
import { delimiter, dirname, resolve } from "node:path";
import { parse } from "yaml";

export interface ClusterAccess {
  server: string;
  ca?: Buffer | undefined;
  cert?: Buffer | undefined;
  key?: Buffer | undefined;
  servername?: string | undefined;
  token?: string | undefined;
  /** Holds the token of the moment. */
  tokenFile?: string | undefined;
  /** In which one works who names none. */
  namespace?: string | undefined;
  /** A user that files alone don't tell all of, as with an exec plugin; and the cluster, since a plugin may ask for it. */
  needsClient?: { user: Entry; cluster: Entry } | undefined;
}

type Entry = Record<string, unknown>;

/** A cluster, user or context, with paths as they are seen from here. */
type Find = (list: "clusters" | "users" | "contexts", name: unknown) => Entry | undefined;

const PATHS = ["certificate-authority", "client-certificate", "client-key", "tokenFile"];
/** What a user may have that is read from files. */
const PLAIN = ["token", "tokenFile", "client-certificate", "client-certificate-data", "client-key", "client-key-data"];

/** Throws an Error that says which file can't be used, and why. */
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
    throw new Error(`${whose} names no cluster: set its current-context, with kubectl config use-context`);
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

/** Throws an Error that says what can't be read, and where. */
export async function readNamed(what: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new Error(`can't read ${what} ${path}: ${(error as { code?: string }).code}`);
  }
}

/** What would be less safe than it looks, or not what is meant. */
function refuseUnsafe(whose: string, cluster: Entry, user: Entry): void {
  const unverified = `${whose} has insecure-skip-tls-verify: Inlay carries Secrets and never skips verification; give the cluster's certificate-authority instead`;
  const proxied = `${whose} has a proxy-url, and Inlay uses no proxy: run it where the API server is reached without one`;
  const impersonating = `${whose} impersonates somebody (as), and Inlay impersonates the account of each binding itself: give it credentials without`;
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
    // Its own words quote the line.
  }
  if (typeof config !== "object" || config === null) throw new Error(`${file} is no kubeconfig: it is not YAML`);
  return config as Entry;
}

/** As it stands there, in base64, or in the file that is named. */
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
