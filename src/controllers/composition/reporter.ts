/** Writes the status, the finalizer and the metrics of compositions. The status of a composition with many claims is written at intervals. */
import type { BindingComposition } from "../../api/composition.ts";
import type { Verdict } from "../../api/verdict.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import { BINDING_COMPOSITIONS } from "../../apimachinery/resources.ts";
import type { BindingStore } from "../../cache/binding-store.ts";
import type { ResourceStore } from "../../cache/resource-store.ts";
import type { Metrics } from "../../observability/metrics.ts";
import type { CpuScheduler } from "../../workqueue/cpu-scheduler.ts";
import { DONE, type WorkResult } from "../../workqueue/work-queue.ts";
import { orWhenStalled } from "../binding/requeue.ts";
import { StatusWriter } from "../status-writer.ts";
import type { CompositionState } from "./composition-state.ts";
import {
  activeStatus,
  type BindingCounts,
  type CompositionStatus,
  countBindings,
  countsOf,
  heldStatus,
  isCatchingUp,
} from "./composition-status.ts";

type Services = ConstructorParameters<typeof StatusWriter>[0] & {
  metrics: Pick<Metrics, "objects">;
  bindings: Pick<BindingStore, "all">;
  cpu: Pick<CpuScheduler, "run">;
  store: Pick<ResourceStore<BindingComposition>, "all" | "wrote">;
};

const FINALIZER = "inlay.dev/compositions";
/**
 * The interval between two computations of a status: at least EVERY_MS, and at least SHARE times the duration of one computation.
 */
const EVERY_MS = 1_000;
const SHARE = 20;
/** Some milliseconds of work. */
const COUNTED_AT_ONCE = 2_000;

export class Reporter {
  readonly #bindings: Pick<BindingStore, "all">;
  readonly #cpu: Pick<CpuScheduler, "run">;
  readonly #writer: StatusWriter<BindingComposition, BindingComposition>;
  /** By composition, when its status may be computed next. */
  readonly #due = new Map<string, number>();

  constructor(services: Services) {
    this.#bindings = services.bindings;
    this.#cpu = services.cpu;
    services.metrics.objects.observeCompositions(() => services.store.all.map(countsOf));
    this.#writer = new StatusWriter<BindingComposition, BindingComposition>(services, {
      resource: BINDING_COMPOSITIONS,
      finalizer: FINALIZER,
      logKey: "composition",
      encode: (composition, status) => ({ ...composition, status }),
      wrote: (answer) => {
        services.store.wrote(answer);
        return answer;
      },
    });
  }

  addFinalizer(composition: BindingComposition): Promise<BindingComposition> {
    return this.#writer.setFinalizer(composition, true);
  }

  /** Whether the finalizer keeps the composition. */
  isHeld({ metadata }: BindingComposition): boolean {
    return metadata.finalizers?.includes(FINALIZER) === true;
  }

  removeFinalizer(composition: BindingComposition): Promise<void> {
    return this.#writer.removeFinalizer(composition);
  }

  /** For a composition that Inlay processes. `refusal` says why its claims can't be seen. */
  async report(
    composition: BindingComposition,
    state: CompositionState,
    refusal: Problem | undefined,
  ): Promise<WorkResult> {
    const { name, generation } = composition.metadata;
    if (refusal === undefined && isCatchingUp(composition, state)) return DONE;
    const wait = (this.#due.get(name) ?? 0) - performance.now();
    if (wait > 0 && composition.status?.observedGeneration === generation) return { retry: "after", ms: wait };
    const { counts, tookMs } = await this.#count(name, state);
    const began = performance.now();
    const status = activeStatus(composition, state, counts, refusal, new Date());
    await this.#write(composition, status);
    const now = performance.now();
    this.#due.set(name, now + Math.max(EVERY_MS, SHARE * (now - began + tookMs)));
    return orWhenStalled(DONE, status, new Date());
  }

  /** Counts a part of all bindings in each turn of the processor. */
  async #count(name: string, { records }: CompositionState): Promise<{ counts: BindingCounts; tookMs: number }> {
    const { all } = this.#bindings;
    let [bindings, ready, stalled, tookMs] = [0, 0, 0, 0];
    for (let from = 0; from < all.length; from += COUNTED_AT_ONCE)
      await this.#cpu.run(name, () => {
        const began = performance.now();
        const counts = countBindings(name, all.slice(from, from + COUNTED_AT_ONCE), records);
        bindings += counts.bindings;
        ready += counts.ready;
        stalled += counts.stalled;
        tookMs += performance.now() - began;
      });
    return { counts: { bindings, ready, stalled }, tookMs };
  }

  /** For a composition that Inlay does not process: its bindings stay. Returns the status. */
  async hold(composition: BindingComposition, verdict: Verdict, ready = verdict): Promise<CompositionStatus> {
    const status = heldStatus(composition, verdict, new Date(), ready);
    await this.#write(composition, status);
    return status;
  }

  /** Like `hold`, without an event: an installation for one namespace may record none about a cluster-scoped object. */
  async holdQuietly(composition: BindingComposition, verdict: Verdict): Promise<void> {
    await this.#writer.writeStatus(composition, heldStatus(composition, verdict, new Date()));
  }

  forget(composition: string): void {
    this.#due.delete(composition);
  }

  async #write(composition: BindingComposition, status: CompositionStatus): Promise<void> {
    await this.#writer.writeStatus(composition, status);
    this.#writer.recordEvent(composition, status);
  }
}
