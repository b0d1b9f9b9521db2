/** An API server with only lists and watches. Tests set who may watch what, and see the open streams. */
import type { KubeObject, Resource } from "../../../src/apimachinery/objects.ts";
import type { AccessRules } from "../../../src/kube/access-rules.ts";
import type { ApiError } from "../../../src/kube/api-error.ts";
import type { Request } from "../../../src/kube/transport.ts";
import { finish } from "../../../src/workqueue/cpu-scheduler.ts";
import { fakeClient, fakeTransport } from "../fakes.ts";
import { apiError } from "./list-watch.ts";

interface OpenStream {
  send(type: string, object: KubeObject): void;
  end(error?: ApiError): void;
}

export class FakeApi {
  /** `identity path name`: the allowed lists and watches; the controller is `-`, any name `*`. */
  readonly rights = new Set<string>();
  /** Additional answers of reviews, which are wrong. */
  readonly promised = new Set<string>();
  /** The existing objects, by the path of their collection. */
  readonly objects = new Map<string, KubeObject[]>();
  /** By `identity path name`, followed by the label selector. */
  readonly streams = new Map<string, OpenStream>();
  readonly reviews: string[] = [];
  lists = 0;
  /** Whether several streams of one address may be open, because they show different parts. The later one has a prime. */
  mayRepeat = false;

  readonly transport = fakeTransport({
    request: async (request: Request) => {
      this.lists++;
      const { path } = this.#admitted(request);
      const items = [...this.objects].filter(([key]) => path === key || isWithin(key, path)).flatMap(([, all]) => all);
      return { items, metadata: { resourceVersion: "10" } };
    },
    lines: (
      request: Request,
      signal: AbortSignal,
      onOpen: () => void,
      read: (line: string) => Generator<unknown, unknown, void>,
    ) => this.#lines(request, signal, onOpen, read),
  });

  /** The answers of rules reviews, by `identity namespace`. Others are incomplete. */
  readonly rules = new Map<string, AccessRules>();
  /** The requested rules reviews. */
  readonly ruleReviews: string[] = [];

  readonly client = fakeClient({
    rules: async (identity: string, namespace: string) => {
      const place = `${identity || "-"} ${namespace}`;
      this.ruleReviews.push(place);
      return this.rules.get(place) ?? { incomplete: true, resourceRules: [] };
    },
    may: async (identity: string, _verb: string, resource: Resource, namespace?: string, name?: string) => {
      const path = `${namespace ? `${namespace}/` : ""}${resource.plural}`;
      const review = `${identity || "-"} ${path} ${name ?? "*"}`;
      this.reviews.push(review);
      return [review, review.replace(/ \S+$/, " *")].some(
        (right) => this.rights.has(right) || this.promised.has(right),
      );
    },
  });

  get open(): string[] {
    return [...this.streams.keys()].toSorted();
  }

  /** `registry/secrets`, or `secrets` for all namespaces. Throws 403. */
  #admitted({ identity, path }: Request): { path: string; key: string } {
    const url = new URL(path, "https://x");
    const [, namespace, plural = ""] = /(?:\/namespaces\/([^/]+))?\/([^/]+)$/.exec(url.pathname) ?? [];
    const name = url.searchParams.get("fieldSelector")?.replace("metadata.name=", "") ?? "*";
    const labels = url.searchParams.get("labelSelector");
    const collection = `${namespace ? `${namespace}/` : ""}${plural}`;
    const key = `${identity || "-"} ${collection} ${name}`;
    if (!this.rights.has(key) && !this.rights.has(key.replace(/ \S+$/, " *"))) throw apiError(403, "Forbidden");
    return { path: collection, key: labels === null ? key : `${key} ${labels}` };
  }

  async *#lines<T>(
    request: Request,
    signal: AbortSignal,
    onOpen: () => void,
    read: (line: string) => Generator<unknown, T, void>,
  ): AsyncGenerator<T, void> {
    let { key } = this.#admitted(request);
    while (this.mayRepeat && this.streams.has(key)) key += "'";
    if (this.streams.has(key)) throw new Error(`${key} is watched twice`);
    const queue: string[] = [];
    let wake = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    end.promise.catch(() => {});
    signal.addEventListener("abort", () => end.reject(apiError(0, "Aborted")), { once: true });
    this.streams.set(key, {
      send(type, object) {
        queue.push(JSON.stringify({ type, object }));
        wake.resolve();
      },
      end: (error) => (error ? end.reject(error) : end.resolve()),
    });
    try {
      onOpen();
      let isOpen = true;
      while (isOpen) {
        yield* queue.splice(0).map((line) => finish(read(line)));
        wake = Promise.withResolvers();
        isOpen = await Promise.race([wake.promise.then(() => true), end.promise.then(() => false)]);
      }
    } finally {
      this.streams.delete(key);
    }
  }
}

const isWithin = (key: string, path: string) => !path.includes("/") && key.endsWith(`/${path}`);
