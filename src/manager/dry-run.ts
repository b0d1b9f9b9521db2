/** `inlay controller --dry-run`: logs what the controllers would write, and says when their first pass is over. */
import type { StreamState } from "../cache/reflector.ts";
import type { Credentials } from "../kube/credentials.ts";
import { DryRunTransport, type PlannedWrite } from "../kube/dry-run.ts";
import { CONTROLLER, describeIdentity } from "../kube/identity.ts";
import type { TransportOptions } from "../kube/transport.ts";
import type { Log } from "../observability/log.ts";
import type { WorkResult } from "../workqueue/work-queue.ts";
import type { Controller } from "./manager.ts";

const CHECK_EVERY_MS = 250;
/** How often in a row nothing is left to do before the first pass counts as over. A debounced change and a new watch take less. */
const QUIET_CHECKS = 8;

export class DryRun {
  readonly transport: DryRunTransport;
  readonly #log: Log;
  readonly #objects = new Set<string>();
  #writes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(credentials: Credentials, log: Log, options?: TransportOptions) {
    this.#log = log;
    const planned = ({ verb, resource, namespace, name, identity, fields }: PlannedWrite) => {
      const object = [resource, [namespace, name].filter((each) => each !== undefined).join("/")].join(" ");
      const as = identity === CONTROLLER ? {} : { as: describeIdentity(identity) };
      const isStatus = resource.endsWith("/status");
      if (!isStatus) {
        this.#writes++;
        this.#objects.add(object);
      }
      // Inlay's own status follows from the rest.
      log[isStatus ? "debug" : "info"]({ verb, object, ...as, fields }, "would write");
    };
    this.transport = new DryRunTransport(credentials, planned, options);
  }

  /**
   * The same controller, except that a reconcile that would have written is not retried: no watch will show the write, so it would be
   * planned again and again.
   */
  controller(controller: Controller): Controller {
    const { transport } = this;
    return {
      name: controller.name,
      queue: controller.queue,
      store: controller.store,
      get debugState() {
        return controller.debugState;
      },
      start: () => controller.start?.(),
      resign: async () => controller.resign?.(),
      stop: async () => controller.stop?.(),
      reconcile: async (key: string): Promise<WorkResult> => {
        const { result, hasWritten } = await transport.during(() => controller.reconcile(key));
        return hasWritten ? { retry: "never" } : result;
      },
    };
  }

  /** Logs a summary when every object was reconciled once. */
  start(controllers: readonly Controller[], watches: () => readonly StreamState[]): void {
    let quiet = 0;
    let writes = 0;
    this.#timer = setInterval(() => {
      const isIdle = controllers.every(
        ({ queue }) => queue.running.length === 0 && sum(Object.values(queue.depths)) === 0,
      );
      const isPending = [...controllers.flatMap(({ store }) => store?.state ?? []), ...watches()].some(
        ({ phase }) => phase === "pending",
      );
      const hasWritten = this.#writes !== writes;
      writes = this.#writes;
      quiet = isIdle && !isPending && !hasWritten ? quiet + 1 : 0;
      if (quiet < QUIET_CHECKS) return;
      this.stop();
      const fields = { writes: this.#writes, objects: this.#objects.size };
      this.#log.info(
        fields,
        "dry run: the first pass is over, and nothing was written; changes are followed until you stop it",
      );
    }, CHECK_EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);
