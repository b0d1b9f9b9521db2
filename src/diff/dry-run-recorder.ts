/**
 * Sends every write as a dry run, so that nothing changes, and keeps what each object would be. Reads pass, and so do access reviews, which
 * write nothing.
 */
import type { KubeObject } from "../apimachinery/objects.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { asDryRun, DryDeletions } from "../kube/dry-run.ts";
import type { Request, RequestSender } from "../kube/transport.ts";

/** An object before and after a write; undefined if it does not exist. */
export interface RecordedWrite {
  readonly before: SecretValue<KubeObject> | undefined;
  readonly after: SecretValue<KubeObject> | undefined;
}

const REVIEWS = "/apis/authorization.k8s.io/";

export class DryRunRecorder implements RequestSender {
  readonly #transport: RequestSender;
  readonly #mark: string | undefined;
  /** The objects as they were last read, by their path. */
  readonly #read = new Map<string, SecretValue<KubeObject>>();
  readonly #writes: RecordedWrite[] = [];
  readonly #deletions = new DryDeletions();

  /** `mark`: as in the requests of Inlay for the binding, if the user may set it. */
  constructor(transport: RequestSender, mark?: string) {
    this.#transport = transport;
    this.#mark = mark;
  }

  /** In the order of the requests. An object may be written several times, each time in its version in the cluster. */
  get writes(): readonly RecordedWrite[] {
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
    const { mayBeSent: _, accept: __, ...sent } = request;
    const rest = this.#mark === undefined ? sent : { ...sent, mark: this.#mark };
    const isTrial = query.includes("dryRun=");
    // A request that already is a dry run only tries something.
    const replaced = isTrial ? undefined : (this.#deletions.replaced(request) as T | undefined);
    const answer = replaced ?? (await this.#transport.request<T>(isTrial ? rest : asDryRun(rest), signal));
    if (!isTrial) this.#deletions.note(request);
    const after = request.method === "DELETE" ? undefined : new SecretValue(answer as KubeObject);
    if (!isTrial) this.#writes.push({ before, after });
    return answer;
  }
}

const isObject = (answer: unknown): answer is KubeObject =>
  typeof answer === "object" && answer !== null && "metadata" in answer && !("items" in answer);
