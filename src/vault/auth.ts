/** Requests tokens from Vault: logs in by the method of the connection, renews, looks up and revokes. Stores nothing. */

import { isObject } from "../apimachinery/json.ts";
import { type JsonObject, plainPath } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { describeIdentity, type Identity } from "../kube/identity.ts";
import { failed, refused, VaultProblem } from "./failures.ts";
import type { VaultReply, VaultRequest, VaultSender } from "./http.ts";
import { encodePath, NAMESPACE } from "./path.ts";
import type { Auth, ConnectionServices, ConnectionSettings } from "./settings.ts";
import type { VaultReader } from "./types.ts";

/** Characters that a header allows. */
export const TOKEN = /^[\x21-\x7e]+$/;

export interface Lease {
  /** 0 for a token that does not expire. */
  readonly ttlMs: number;
  readonly renewable: boolean;
}

export interface Token extends Lease {
  readonly token: SecretValue<string>;
  /** Whether Inlay obtained it by a login, and so must revoke it. */
  readonly isRevocable: boolean;
  /** Whether the connection contains the token itself, so that no login can replace it. */
  readonly isGiven: boolean;
}

/** The identity and role of a login. Principals with the same key share a login. */
export interface Principal {
  readonly key: string;
  readonly role?: string;
  readonly identity?: Identity;
}

type Settings = Pick<ConnectionSettings, "address" | "timeoutMs"> & { readonly auth: Auth };

export class Authenticator {
  readonly #settings: Settings;
  readonly #http: VaultSender;
  readonly #services: Pick<ConnectionServices, "requestToken" | "metrics">;

  constructor(settings: Settings, http: VaultSender, services: Pick<ConnectionServices, "requestToken" | "metrics">) {
    this.#settings = settings;
    this.#http = http;
    this.#services = services;
  }

  principalOf(reader: VaultReader): Principal {
    const { auth } = this.#settings;
    if (auth.kind !== "kubernetes") return { key: auth.kind };
    const role = auth.role.replaceAll(NAMESPACE, reader.namespace);
    const identity = auth.as ?? reader.identity;
    const uid = auth.as === undefined ? (reader.uid ?? "") : "";
    return { key: ["kubernetes", role, identity, uid].join("|"), role, identity };
  }

  /** The login in messages. */
  describe({ role }: Principal): string {
    const { auth } = this.#settings;
    if (auth.kind === "token") return "token of the connection";
    return `login at ${plainPath(`auth/${auth.mount}`)}${auth.kind === "kubernetes" ? ` as role ${plainPath(role ?? "")}` : ""}`;
  }

  /** Throws Problem. */
  async login(principal: Principal): Promise<Token> {
    try {
      const token = await this.#token(principal);
      this.#services.metrics.loggedIn("success");
      return token;
    } catch (error) {
      this.#services.metrics.loggedIn("failure");
      throw error;
    }
  }

  /** Undefined if Vault does not renew the token, so that a new login is needed. Throws Problem if Vault can't be reached. */
  async renew(principal: Principal, token: SecretValue<string>): Promise<Lease | undefined> {
    const reply = await this.#send(principal, selfRequest("renew", token));
    if (reply.status >= 400 && reply.status < 500 && reply.status !== 429) return undefined;
    if (reply.status !== 200) throw this.#refused(principal, reply);
    const answer = reply.json(this.#asked(principal))["auth"];
    return isObject(answer) ? leaseOf(answer, "lease_duration") : undefined;
  }

  /**
   * Looks a token up. `unknown`: Vault does not know it. `unsure`: the answer is inconclusive, for example because the token may not look
   * itself up. Throws Problem if Vault can't be reached.
   */
  async lookUp(principal: Principal, token: SecretValue<string>): Promise<Lease | "unknown" | "unsure"> {
    const request = { operation: "lookup", method: "GET", path: "auth/token/lookup-self", token } as const;
    const reply = await this.#send(principal, request);
    if (reply.status === 403) return isTokenUnknown(reply) ? "unknown" : "unsure";
    if (reply.status !== 200) throw this.#refused(principal, reply);
    const data = reply.json(this.#asked(principal))["data"];
    return isObject(data) ? leaseOf(data, "ttl") : "unsure";
  }

  /** A token that can't be revoked expires by itself. */
  async revoke(principal: Principal, token: SecretValue<string>): Promise<void> {
    await this.#send(principal, selfRequest("revoke", token)).catch((error) => {
      if (!(error instanceof Problem)) throw error;
    });
  }

  async #token(principal: Principal): Promise<Token> {
    const { auth } = this.#settings;
    if (auth.kind === "token") return this.#given(principal, auth.token);
    const body = await this.#credentials(auth, principal);
    const path = `${encodePath("auth", auth.mount)}/login`;
    const reply = await this.#send(principal, { operation: "login", method: "POST", path, body });
    if (reply.status !== 200) throw this.#refused(principal, reply);
    const answer = reply.json(this.#asked(principal))["auth"];
    const token = isObject(answer) ? answer["client_token"] : undefined;
    if (!isObject(answer) || typeof token !== "string" || !TOKEN.test(token)) {
      const why = "the answer contains no token; turn off response wrapping and MFA for this login";
      throw new VaultProblem("VaultUnavailable", `${this.describe(principal)}: ${why}`);
    }
    // A batch token can't be revoked.
    const isRevocable = answer["token_type"] !== "batch";
    return { token: new SecretValue(token), isRevocable, isGiven: false, ...leaseOf(answer, "lease_duration") };
  }

  /** Policies may forbid looking up a token. Such a token is used as long as it works. */
  async #given(principal: Principal, token: SecretValue<string>): Promise<Token> {
    const lease = await this.lookUp(principal, token);
    if (lease === "unknown") {
      const why = "has expired or was revoked; write a new one to the key in spec.auth.token";
      throw new VaultProblem("VaultDenied", `the ${this.describe(principal)} ${why}`);
    }
    const { ttlMs, renewable } = lease === "unsure" ? { ttlMs: 0, renewable: false } : lease;
    return { token, isRevocable: false, isGiven: true, ttlMs, renewable };
  }

  async #credentials(auth: Exclude<Auth, { kind: "token" }>, principal: Principal): Promise<SecretValue<JsonObject>> {
    if (auth.kind === "appRole")
      return auth.secretID.map((secretID) => ({ role_id: auth.roleID, secret_id: secretID }));
    const { role = "", identity = "" } = principal;
    const jwt = await this.#services.requestToken(identity, auth.audiences);
    return jwt.map((text) => ({ role, jwt: text }));
  }

  #send(principal: Principal, request: VaultRequest): Promise<VaultReply> {
    return this.#http.send(request).catch((error) => {
      throw failed(error, this.#asked(principal));
    });
  }

  #refused(principal: Principal, reply: VaultReply): Problem {
    const { auth } = this.#settings;
    const { status } = reply;
    const place = this.describe(principal);
    const denied = (why: string) => new VaultProblem("VaultDenied", place + why);
    if (status === 404 && auth.kind !== "token")
      return denied(": nothing is mounted there; enable the auth method, or correct mount");
    if (status !== 400 && status !== 403) return refused(reply, this.#asked(principal));
    if (auth.kind !== "kubernetes")
      return denied(" was refused; check the RoleID, and that the SecretID has not expired");
    const account = describeIdentity(principal.identity ?? "");
    const bound = `bound service accounts, namespaces and audience (${auth.audiences.map(plainPath).join(", ")})`;
    return denied(` was refused for ${account}; check that the role exists, and its ${bound}`);
  }

  #asked(principal: Principal) {
    const { address, timeoutMs } = this.#settings;
    return { place: this.describe(principal), server: address, timeoutMs };
  }
}

/** A request of a token about itself. */
function selfRequest(operation: "renew" | "revoke", token: SecretValue<string>): VaultRequest {
  return { operation, method: "POST", path: `auth/token/${operation}-self`, token, body: new SecretValue({}) };
}

/** Whether Vault denies a request because it does not know the token. Servers before Vault 1.13 do not report that. */
export const isTokenUnknown = (reply: VaultReply): boolean => reply.says(/invalid token|bad token/i);

/** `field` contains the seconds. */
function leaseOf(answer: JsonObject, field: string): Lease {
  const seconds = Number(answer[field]);
  return { ttlMs: seconds > 0 ? seconds * 1_000 : 0, renewable: answer["renewable"] === true };
}
