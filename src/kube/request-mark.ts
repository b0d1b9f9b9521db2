/** Whether Inlay may set the mark of a request, which names the binding for which it is sent. */
import type { Client } from "./client.ts";
import { CONTROLLER, MARK_KEY } from "./identity.ts";

/** Without this permission, the API server would refuse a request with a mark. */
export const MARK_RIGHT = {
  verb: "impersonate",
  group: "authentication.k8s.io",
  version: "v1",
  plural: `userextras/${MARK_KEY}`,
} as const;

const RECHECK_MS = 30_000;

/** An installation for one namespace has no such permission by itself, and the role of an older version lacks it. */
export class MarkPermission {
  readonly #client: Pick<Client, "may">;
  #known: { isGranted: boolean; until: number } | undefined;
  #check: Promise<boolean> | undefined;

  /** The client sends no mark itself. */
  constructor(client: Pick<Client, "may">) {
    this.#client = client;
  }

  /** The last answer of the API server, which is renewed every 30 seconds beside the requests. Throws ApiError if there is none yet. */
  async isGranted(): Promise<boolean> {
    const known = this.#known;
    if (known !== undefined && Date.now() < known.until) return known.isGranted;
    this.#check ??= this.#ask().finally(() => {
      this.#check = undefined;
    });
    if (known === undefined) return await this.#check;
    this.#check.catch(() => {});
    return known.isGranted;
  }

  async #ask(): Promise<boolean> {
    const isGranted = await this.#client.may(CONTROLLER, MARK_RIGHT.verb, MARK_RIGHT);
    this.#known = { isGranted, until: Date.now() + RECHECK_MS };
    return isGranted;
  }
}
