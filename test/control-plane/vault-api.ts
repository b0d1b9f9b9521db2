/** Sends a request to a Vault server, and returns the status and the parsed response. */
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { json } from "node:stream/consumers";

const DEADLINE_MS = 30_000;

/** A response of Vault, whose fields the test knows. */
// biome-ignore lint/suspicious/noExplicitAny: answers of Vault are checked by assertions
export type VaultBody = any;

export interface VaultAnswer {
  status: number;
  body: VaultBody;
}

export interface VaultServer {
  address: string;
  /** The authority of the server's certificate, and the name that it is for, with https. */
  trust?: { ca: string; servername: string };
}

export interface VaultRequest {
  method: string;
  /** The path below `/v1/`. */
  path: string;
  body?: object | undefined;
  token?: string | undefined;
}

/** Vault denied a request. */
export class VaultRefused extends Error {
  override readonly name = "VaultRefused";
  readonly status: number;
  readonly errors: readonly string[];

  constructor({ method, path }: VaultRequest, { status, body }: VaultAnswer) {
    const errors: string[] = body?.errors ?? [];
    super(`${method} ${path}: ${status} ${errors.join("; ")}`);
    this.status = status;
    this.errors = errors;
  }
}

export async function askVault({ address, trust }: VaultServer, request: VaultRequest): Promise<VaultAnswer> {
  const { method, path, body, token } = request;
  const url = `${address}/v1/${path}`;
  // Keeps no connection: it would outlive a killed server, and delay the end of this process.
  const options = {
    method,
    agent: false,
    signal: AbortSignal.timeout(DEADLINE_MS),
    headers: { "content-type": "application/json", ...(token !== undefined && { "x-vault-token": token }) },
  };
  return await new Promise((resolve, reject) => {
    const asked = trust === undefined ? requestHttp(url, options) : requestHttps(url, { ...options, ...trust });
    asked.once("error", reject);
    asked.once("response", (response) => {
      const status = response.statusCode as number;
      const isEmpty = status === 204 || response.headers["content-length"] === "0";
      if (isEmpty) response.resume();
      const parsed = isEmpty ? Promise.resolve(undefined) : json(response);
      parsed.then((body) => resolve({ status, body }), reject);
    });
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
