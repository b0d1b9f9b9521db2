/**
 * Checks every ten seconds whether the API server publishes other schemas of the kinds that bindings write. No watch shows that:
 * a field that a CRD drops is missing at the next read, in the same version of the object.
 */
import type { Schemas } from "../../kube/schemas.ts";
import { WorkQueue, type WorkResult } from "../../workqueue/work-queue.ts";

const EVERY_MS = 10_000;

export class SchemaController {
  readonly name = "schemas";
  readonly queue = new WorkQueue({ concurrency: 1, backoffMs: { first: 1_000, most: EVERY_MS } });
  readonly #schemas: Pick<Schemas, "refresh">;

  constructor({ schemas }: { schemas: Pick<Schemas, "refresh"> }) {
    this.#schemas = schemas;
  }

  start(): void {
    this.queue.add("published");
  }

  /** The queue has one key: all schemas. Users of a schema listen to `Schemas.onChange`. */
  async reconcile(): Promise<WorkResult> {
    await this.#schemas.refresh();
    return { retry: "after", ms: EVERY_MS };
  }
}
