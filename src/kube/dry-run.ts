/**
 * Sends every write as a dry run, so that nothing changes, and keeps what each object would be. Reads pass, and so do access reviews, which
 * write nothing.
 */
import type { JsonObject, KubeObject } from "../apimachinery/objects.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import type { Request, Transport } from "./transport.ts";

/** An object before and after a write; undefined if it does not exist. */
export interface PlannedWrite {
  readonly before: SecretValue<KubeObject> | undefined;
  readonly after: SecretValue<KubeObject> | undefined;
}

const REVIEWS = "/apis/authorization.k8s.io/";

export class DryRun implements Pick<Transport, "request"> {
  readonly #transport: Pick<Transport, "request">;
  /** The objects as they were last read, by their path. */
  readonly #read = new Map<string, SecretValue<KubeObject>>();
  readonly #writes: PlannedWrite[] = [];

  constructor(transport: Pick<Transport, "request">) {
    this.#transport = transport;
  }

  /** In the order of the requests. An object may be written several times, each time in its version in the cluster. */
  get writes(): readonly PlannedWrite[] {
    return this.#writes;
  }

  async request<T>(request: Request, signal?: AbortSignal): Promise<T> {
    const [path = "", query = ""] = request.path.split("?");
    if (path.startsWith(REVIEWS)) return this.#transport.request<T>(request, signal);
    if (request.method === "GET") {
      const answer = await this.#transport.request<T>(request, signal);
      if (isObject(answer)) this.#read.set(path, new SecretValue(answer));
      return answer;
    }
    const before = request.method === "POST" ? undefined : this.#read.get(path);
    const parameters = new URLSearchParams(query);
    parameters.set("dryRun", "All");
    const { mayBeSent: _, accept: __, ...rest } = request;
    const answer = await this.#transport.request<T>(
      {
        ...rest,
        path: `${path}?${parameters}`,
        // The API server ignores the parameter of a deletion that has a body.
        ...(request.method === "DELETE" && { body: deletionOf(request.body) }),
      },
      signal,
    );
    const after = request.method === "DELETE" ? undefined : new SecretValue(answer as KubeObject);
    // A request that already was a dry run only tries something.
    if (!query.includes("dryRun=")) this.#writes.push({ before, after });
    return answer;
  }
}

const isObject = (answer: unknown): answer is KubeObject =>
  typeof answer === "object" && answer !== null && "metadata" in answer && !("items" in answer);

const deletionOf = (body = "{}"): string => JSON.stringify({ ...(JSON.parse(body) as JsonObject), dryRun: ["All"] });
