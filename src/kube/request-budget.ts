/** Limits how long a piece of work may send requests as an account, and how many. Requests as the controller itself are not limited. */
import { AsyncLocalStorage } from "node:async_hooks";
import { ApiError } from "./api-error.ts";
import { CONTROLLER } from "./identity.ts";
import type { Transport } from "./transport.ts";

/** The reason of the ApiError beyond the limit. */
export const OVER_BUDGET = "OverBudget";

/** A binding selects at most 5,000 objects, and each needs a few requests. */
const LIMITS = { forMs: 5 * 60_000, requests: 50_000 };

interface Work {
  left: number;
  endsAt: number;
  isOver: boolean;
  hasEnded: boolean;
}

export class RequestBudget {
  readonly #limits: typeof LIMITS;
  readonly #work = new AsyncLocalStorage<Work>();

  constructor(limits = LIMITS) {
    this.#limits = limits;
  }

  /** Runs the work. `isOver`: the limit was exceeded, so requests were not sent. What the work starts and does not await has no limit later. */
  async during<T>(work: () => Promise<T>): Promise<{ result: T; isOver: boolean }> {
    const { forMs, requests } = this.#limits;
    const state: Work = { left: requests, endsAt: Date.now() + forMs, isOver: false, hasEnded: false };
    try {
      const result = await this.#work.run(state, work);
      return { result, isOver: state.isOver };
    } finally {
      state.hasEnded = true;
    }
  }

  /** A transport whose requests count. */
  limit(transport: Pick<Transport, "request">): Pick<Transport, "request"> {
    return {
      request: (request, signal) => {
        const work = request.identity === CONTROLLER ? undefined : this.#work.getStore();
        if (work === undefined || work.hasEnded) return transport.request(request, signal);
        work.left--;
        work.isOver ||= work.left < 0 || Date.now() > work.endsAt;
        if (!work.isOver) return transport.request(request, signal);
        return Promise.reject(new ApiError(request.method, 0, OVER_BUDGET));
      },
    };
  }
}
