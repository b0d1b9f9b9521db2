/** A list and watch that the test controls: it sets the answers of the server, and records the calls of the reflector. */
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import type { ListWatch, Page, WatchEvent } from "../../../src/kube/list-watch.ts";
import { settled } from "../clock.ts";

export const apiError = (status: number, reason = "Error", retryAfterSeconds?: number) =>
  new ApiError("GET /x", status, reason, undefined, retryAfterSeconds);

/** The answer when the controller may not impersonate an account. */
export function impersonationRefused(): ApiError {
  const message = `serviceaccounts "a" is forbidden: User "x" cannot impersonate resource "serviceaccounts" in API group ""`;
  return ApiError.fromAnswer("LIST", 403, JSON.stringify({ reason: "Forbidden", message }));
}

export function secret(name: string, resourceVersion: string, namespace = "registry"): KubeObject {
  return { apiVersion: "v1", kind: "Secret", metadata: { name, namespace, uid: `uid-${name}`, resourceVersion } };
}

/** A requested watch. The test opens it. */
export class FakeWatch {
  readonly since: string;
  isOpen = true;
  readonly #granted = Promise.withResolvers<void>();
  readonly #queue: WatchEvent[] = [];
  #wake = Promise.withResolvers<void>();
  #end: { error?: ApiError } | undefined;

  constructor(since: string) {
    this.since = since;
  }

  async grant(): Promise<this> {
    this.#granted.resolve();
    await settled();
    return this;
  }

  async send(...events: WatchEvent[]): Promise<void> {
    this.#queue.push(...events);
    this.#wake.resolve();
    await settled();
  }

  /** The server ends it, or it breaks with `error`. */
  async end(error?: ApiError): Promise<void> {
    this.#end = error ? { error } : {};
    if (error) this.#granted.reject(error);
    this.#wake.resolve();
    await settled();
  }

  async *events(signal: AbortSignal, onOpen: () => void): AsyncGenerator<WatchEvent, void> {
    const aborted = Promise.withResolvers<never>();
    const onAbort = () => aborted.reject(apiError(0, "Aborted"));
    signal.addEventListener("abort", onAbort, { once: true });
    aborted.promise.catch(() => {});
    try {
      await Promise.race([this.#granted.promise, aborted.promise]);
      onOpen();
      for (;;) {
        yield* this.#queue.splice(0);
        if (this.#end?.error) throw this.#end.error;
        if (this.#end) return;
        this.#wake = Promise.withResolvers();
        await Promise.race([this.#wake.promise, aborted.promise]);
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.isOpen = false;
    }
  }
}

export class FakeListWatch implements Pick<ListWatch, "list" | "watch"> {
  /** The answer to the next list: pages, or an error; "nothing": no answer. */
  answer: Page[] | ApiError | "nothing" = [{ items: [], resourceVersion: "1" }];
  lists = 0;
  readonly watches: FakeWatch[] = [];
  /** Whether watches open by themselves. */
  grants = true;

  async *list(signal: AbortSignal): AsyncGenerator<Page, void, void> {
    this.lists++;
    if (this.answer === "nothing") {
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(apiError(0, "Aborted"))));
    } else if (this.answer instanceof ApiError) throw this.answer;
    else yield* this.answer;
  }

  watch(since: string, _seconds: number, signal: AbortSignal, onOpen: () => void): AsyncGenerator<WatchEvent, void> {
    const watch = new FakeWatch(since);
    this.watches.push(watch);
    if (this.grants) void watch.grant();
    return watch.events(signal, onOpen);
  }

  /** The last requested watch. */
  get watching(): FakeWatch {
    const last = this.watches.at(-1);
    if (last === undefined) throw new Error("there was no watch");
    return last;
  }
}
