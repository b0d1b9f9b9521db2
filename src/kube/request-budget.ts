/**
 * Limits how long a piece of work may send requests as an account, and how many, and marks these requests with the binding for which they are.
 * Requests as the controller itself are neither limited nor marked.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { ApiError } from "./api-error.ts";
import type { Client } from "./client.ts";
import { CONTROLLER, MARK_KEY } from "./identity.ts";
import type { RequestSender } from "./transport.ts";

/** The reason of the ApiError beyond the limit. */
export const OVER_BUDGET = "OverBudget";

/** A binding selects at most 5,000 objects, and each needs a few requests. */
const LIMITS = { forMs: 5 * 60_000, requests: 50_000 };

interface Work {
  mark: string | undefined;
  left: number;
  endsAt: number;
  isOver: boolean;
  hasEnded: boolean;
}

export class RequestBudget {
  readonly #limits: typeof LIMITS;
  readonly #permission: Pick<MarkPermission, "isGranted"> | undefined;
  readonly #work = new AsyncLocalStorage<Work>();

  /** Without a permission, requests are not marked. */
  constructor(permission?: Pick<MarkPermission, "isGranted">, limits = LIMITS) {
    this.#permission = permission;
    this.#limits = limits;
  }

  /**
   * Runs the work for a binding. `isOver`: the limit was exceeded, so requests were not sent. What the work starts and does not await has no
   * limit later.
   */
  async during<T>(mark: string | undefined, work: () => Promise<T>): Promise<{ result: T; isOver: boolean }> {
    const { forMs, requests } = this.#limits;
    const state: Work = { mark, left: requests, endsAt: Date.now() + forMs, isOver: false, hasEnded: false };
    try {
      const result = await this.#work.run(state, work);
      return { result, isOver: state.isOver };
    } finally {
      state.hasEnded = true;
    }
  }

  /** A transport whose requests count and are marked. */
  limit(transport: RequestSender): RequestSender {
    return {
      request: async (request, signal) => {
        const work = request.identity === CONTROLLER ? undefined : this.#work.getStore();
        if (work === undefined) return transport.request(request, signal);
        if (!work.hasEnded) {
          work.left--;
          work.isOver ||= work.left < 0 || Date.now() > work.endsAt;
          if (work.isOver) throw new ApiError(request.method, 0, OVER_BUDGET);
        }
        const { mark } = work;
        const isMarked = mark !== undefined && (await this.#permission?.isGranted()) === true;
        return transport.request(isMarked ? { ...request, mark } : request, signal);
      },
    };
  }
}

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
