/**
 * Limits how long a piece of work may send requests as an account, and how many, and marks these requests with the binding for which they are.
 * Requests as the controller itself are neither limited nor marked.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { ApiError } from "./api-error.ts";
import { CONTROLLER } from "./identity.ts";
import type { MarkPermission } from "./request-mark.ts";
import type { Transport } from "./transport.ts";

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
  limit(transport: Pick<Transport, "request">): Pick<Transport, "request"> {
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
