/**
 * Shows how many bindings and compositions are ready, and the bindings of each composition and VaultConnection. These are few, so their
 * names are labels; the names of other objects are not. Teams may create connections, so the number of series is bounded.
 */
import type { Gauge, Registry } from "prom-client";
import { catalogue } from "../apimachinery/problem.ts";
import { STATE_REASONS } from "../apimachinery/reasons.ts";
import { liveGauge } from "./live-gauge.ts";

/** The condition Ready of an object. Undefined if it has none yet. */
export type Readiness = { readonly status: string; readonly reason: string } | undefined;

/** The bindings of one composition or connection. */
interface BindingCounts {
  readonly ready: number;
  readonly notReady: number;
}

/** The composition or connection, by the values of its labels. */
export interface NamedBindings<T extends string> extends BindingCounts {
  readonly labels: Readonly<Record<T, string>>;
  /** RFC 3339. The oldest are named. */
  readonly createdAt: string;
}

/** How many compositions, and how many connections, have series of their own. The others are counted together. */
export const MAX_NAMED = 100;
/** The label of the others. No object can have this name. */
export const OTHERS = "_others";

const REASONS: ReadonlySet<string> = new Set([...Object.keys(catalogue), ...STATE_REASONS]);
const READY = ["True", "False", "Unknown"];
const PENDING = { status: "Unknown", reason: "Pending" };
/** Users may write the status of an object. A reason that Inlay does not have is not a label. */
const UNKNOWN = { status: "Unknown", reason: "Other" };

export class ObjectMetrics {
  readonly #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** Reads the condition Ready of each binding at each scrape. */
  observeBindings(all: () => Iterable<Readiness>): void {
    this.#readiness("inlay_bindings", "SecretBindings by their condition Ready.", all);
  }

  /** Reads the compositions and the counts of their bindings at each scrape. */
  observeCompositions(all: () => readonly (NamedBindings<"composition"> & { readonly is: Readiness })[]): void {
    this.#readiness("inlay_compositions", "BindingCompositions by their condition Ready.", () =>
      all().map(({ is }) => is),
    );
    this.#named("inlay_composition_bindings", "Bindings of a BindingComposition.", ["composition"], all);
  }

  /** Reads the connections and the counts of the bindings that read through them at each scrape. */
  observeConnections(all: () => readonly NamedBindings<"connection_namespace" | "connection">[]): void {
    const labels = ["connection_namespace", "connection"] as const;
    this.#named("inlay_vault_connection_bindings", "Bindings that read through a VaultConnection.", labels, all);
  }

  #readiness(name: string, help: string, all: () => Iterable<Readiness>): void {
    liveGauge(this.#registry, name, help, ["ready", "reason"], (gauge) => {
      for (const each of all()) {
        const { status, reason } = known(each);
        gauge.inc({ ready: status, reason });
      }
    });
  }

  #named<T extends string>(
    name: string,
    help: string,
    labels: readonly T[],
    all: () => readonly NamedBindings<T>[],
  ): void {
    liveGauge(this.#registry, name, help, [...labels, "state"], (gauge: Gauge<string>) => {
      const byAge = all().toSorted((a, b) => (a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : 0));
      const others = Object.fromEntries(labels.map((label) => [label, OTHERS]));
      for (const [at, { labels: own, ready, notReady }] of byAge.entries()) {
        const labelled = at < MAX_NAMED ? own : others;
        gauge.inc({ ...labelled, state: "ready" }, ready);
        gauge.inc({ ...labelled, state: "not_ready" }, notReady);
      }
    });
  }
}

function known(readiness: Readiness): { status: string; reason: string } {
  if (readiness === undefined) return PENDING;
  return READY.includes(readiness.status) && REASONS.has(readiness.reason) ? readiness : UNKNOWN;
}
