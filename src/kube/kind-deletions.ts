/**
 * Finds out whether one of Inlay's own kinds is being deleted, with its CustomResourceDefinition. Kubernetes then deletes all objects of
 * the kind, without admission, and no user decided on any of them.
 */
import type { KubeObject, ObjectMeta, Resource } from "../apimachinery/objects.ts";
import { CUSTOM_RESOURCE_DEFINITIONS } from "../apimachinery/resources.ts";
import { ifFound, isStatus } from "./api-error.ts";
import { METADATA_ONLY, pathOf } from "./client.ts";
import { listedKind } from "./discovery.ts";
import { CONTROLLER } from "./identity.ts";
import type { Transport } from "./transport.ts";

/** Of a CRD: when it was created, and deleted. `isLate`: read from discovery, which shows a deletion a moment later. */
interface Answer {
  isServed: boolean;
  createdAt?: string | undefined;
  deletedAt?: string | undefined;
  isLate?: true;
}

/** How old a deletion is that discovery certainly shows. Timestamps have whole seconds. */
const DISCOVERED_MS = 2_000;
const MISSING: Answer = { isServed: false };

export class KindDeletions {
  readonly #transport: Pick<Transport, "request" | "serverTime">;
  /** By kind: the request under way, and the one after it, which those share that ask meanwhile. */
  readonly #running = new Map<Resource, Promise<Answer>>();
  readonly #next = new Map<Resource, Promise<Answer>>();
  /** By kind: when its CRD was deleted last. */
  readonly #deletedAt = new Map<Resource, string>();

  constructor(transport: Pick<Transport, "request" | "serverTime">) {
    this.#transport = transport;
  }

  /**
   * Whether a deleted object goes with its kind, which is being deleted or gone. Undefined if this can't be known yet. The answer is
   * certain, because the API server marks the CRD first, and Inlay reads that mark after it has seen the deletion of the object. Throws
   * ApiError.
   *
   * Without the finalizers of a CRD, which users remove if its deletion hangs, its objects stay in etcd, and are there again with the next
   * CRD of that name. What was deleted before that CRD was created went with the former one.
   */
  async isOngoing(
    kind: Resource,
    { creationTimestamp, deletionTimestamp }: Pick<ObjectMeta, "creationTimestamp" | "deletionTimestamp">,
  ): Promise<boolean | undefined> {
    const before = this.#deletedAt.get(kind);
    // No deletion of a CRD is undone.
    if (before !== undefined && creationTimestamp !== undefined && creationTimestamp < before) return true;
    const { isServed, createdAt = "", deletedAt, isLate } = await this.#ask(kind);
    if (deletedAt !== undefined) this.#deletedAt.set(kind, deletedAt);
    if (!isServed || deletedAt !== undefined) return true;
    if ((deletionTimestamp ?? creationTimestamp ?? createdAt) < createdAt) return true;
    const isTooEarly = this.#transport.serverTime() < Date.parse(deletionTimestamp ?? "") + DISCOVERED_MS;
    return isLate && isTooEarly ? undefined : false;
  }

  /** The answer to a request that is sent after this call. */
  #ask(kind: Resource): Promise<Answer> {
    const known = this.#next.get(kind);
    if (known !== undefined) return known;
    const send = () => {
      this.#next.delete(kind);
      const answer = this.#read(kind);
      this.#running.set(kind, answer);
      return answer;
    };
    const next = (this.#running.get(kind) ?? Promise.resolve()).then(send, send);
    this.#next.set(kind, next);
    return next;
  }

  async #read(kind: Resource): Promise<Answer> {
    const name = `${kind.plural}.${kind.group}`;
    try {
      const path = pathOf(CUSTOM_RESOURCE_DEFINITIONS, undefined, name);
      const how = { method: "GET", path, identity: CONTROLLER, accept: METADATA_ONLY } as const;
      const crd = await ifFound(this.#transport.request<KubeObject>(how));
      if (crd === undefined) return MISSING;
      const { creationTimestamp: createdAt, deletionTimestamp: deletedAt } = crd.metadata;
      return { isServed: true, createdAt, deletedAt };
    } catch (error) {
      if (isStatus(error, 403)) return this.#discover(kind);
      throw error;
    }
  }

  /** A kind that is being deleted is served without the verb `create`. */
  async #discover(kind: Resource): Promise<Answer> {
    const listed = await listedKind(this.#transport, kind);
    return listed?.verbs.includes("create") ? { isServed: true, isLate: true } : MISSING;
  }
}
