/** A gauge that is computed at each scrape. */
import { Gauge, type Registry } from "prom-client";

/** `collect` sets all of its series: those of the scrape before are removed. */
export function liveGauge<T extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly T[],
  collect: (gauge: Gauge<T>) => void,
): void {
  new Gauge({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      collect(this);
    },
  });
}
