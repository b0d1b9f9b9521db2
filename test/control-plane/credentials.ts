/**
 * Creates the credentials of a control plane's users: their tokens, the API server's token file, and a kubeconfig for each user.
 */
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";

/** A user's groups, by the user's name. */
export type Users = Record<string, string[]>;

export interface Credentials {
  tokens: Map<string, string>;
  tokenFile: string;
  /** The key pair that signs the tokens of ServiceAccounts. */
  serviceAccountKey: string;
  serviceAccountPublicKey: string;
}

export async function writeCredentials(folder: string, users: Users): Promise<Credentials> {
  const tokens = new Map(Object.keys(users).map((user) => [user, randomBytes(24).toString("base64url")]));
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const credentials = {
    tokens,
    tokenFile: join(folder, "tokens.csv"),
    serviceAccountKey: join(folder, "service-account.key"),
    serviceAccountPublicKey: join(folder, "service-account.pub"),
  };
  const rows = Object.entries(users).map(([user, groups]) => `${tokens.get(user)},${user},${user},"${groups}"\n`);
  await Promise.all([
    writeFile(credentials.tokenFile, rows.join(""), { mode: 0o600 }),
    writeFile(credentials.serviceAccountKey, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 }),
    writeFile(credentials.serviceAccountPublicKey, publicKey.export({ type: "spki", format: "pem" })),
  ]);
  return credentials;
}

/** The authority that signed the API server's certificate: the last certificate of the chain that the server wrote. */
export function authorityOf(chain: string): string {
  const start = chain.lastIndexOf("-----BEGIN CERTIFICATE-----");
  if (start < 0) throw new Error("the API server's certificate file has no certificate");
  return chain.slice(start);
}

interface Access {
  url: string;
  caData: string;
  user: string;
  token: string;
}

export async function writeKubeconfig(file: string, { url, caData, user, token }: Access): Promise<void> {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "inlay",
    clusters: [
      {
        name: "inlay",
        cluster: { server: url, "certificate-authority-data": Buffer.from(caData).toString("base64") },
      },
    ],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: "inlay", context: { cluster: "inlay", user } }],
  };
  await writeFile(file, stringify(config), { mode: 0o600 });
}
