/**
 * Asks the API server, as the controller, who owns a bearer token (TokenReview) and what a user may do
 * (SubjectAccessReview).
 */
import { stringifyJson } from "../apimachinery/json.ts";
import { CONTROLLER } from "./identity.ts";
import type { Transport } from "./transport.ts";

/** A user as a TokenReview returns it. A SubjectAccessReview has the same fields, except that `username` is `user`. */
interface TokenUser {
  username: string;
  uid?: string;
  groups?: string[];
  extra?: Record<string, string[]>;
}

export class AccessReviews {
  readonly #transport: Pick<Transport, "request">;

  constructor(transport: Pick<Transport, "request">) {
    this.#transport = transport;
  }

  /** The user of a token; undefined if the API server does not know the token. Throws ApiError. */
  async userOf(token: string): Promise<TokenUser | undefined> {
    const { status } = await this.#review<{ authenticated?: boolean; user?: TokenUser }>(
      "authentication.k8s.io",
      "TokenReview",
      { token },
    );
    return status.authenticated === true ? status.user : undefined;
  }

  /** Whether the user may `get` a non-resource path, such as `/metrics`. Throws ApiError. */
  async mayGetPath({ username, ...user }: TokenUser, path: string): Promise<boolean> {
    const { status } = await this.#review<{ allowed: boolean }>("authorization.k8s.io", "SubjectAccessReview", {
      user: username,
      ...user,
      nonResourceAttributes: { path, verb: "get" },
    });
    return status.allowed;
  }

  /** Throws a 429 like any other refusal, without a retry: the scraper retries. */
  #review<S>(group: string, kind: string, spec: object): Promise<{ status: S }> {
    return this.#transport.request({
      method: "POST",
      path: `/apis/${group}/v1/${kind.toLowerCase()}s`,
      identity: CONTROLLER,
      isOnce: true,
      body: stringifyJson({ apiVersion: `${group}/v1`, kind, spec }),
    });
  }
}
