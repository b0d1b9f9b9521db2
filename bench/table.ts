/** Prints figures as lines of a table, below a description of the machine. */
import { availableParallelism, loadavg, totalmem } from "node:os";

export class Table {
  /** `busy` is the load before the measurement: on a busy machine, figures mean little. */
  constructor(kubernetes: string, scale: number) {
    const [load = 0] = loadavg();
    const memory = (totalmem() / 2 ** 30).toFixed(0);
    console.log(`${new Date().toISOString().slice(0, 10)}, Node ${process.versions.node}, Kubernetes ${kubernetes}`);
    console.log(
      `${availableParallelism()} cores for all of it, ${memory} GiB, load ${load.toFixed(1)}, scale ${scale}\n`,
    );
    this.row("measured", "floor", "Inlay", "aim");
  }

  row(what: string, floor: string, ours: string, aim = ""): void {
    this.cells(what, floor.padStart(20), ours.padStart(20), ` ${aim}`);
  }

  /** A line with other columns. */
  cells(what: string, ...cells: readonly string[]): void {
    console.log([what.padEnd(62), ...cells.map((cell) => cell.padStart(10))].join(" ").trimEnd());
  }

  /** A note about the figures below. */
  note(text: string): void {
    console.log(text);
  }

  /** A figure without a floor. */
  ours(what: string, ours: string, aim = ""): void {
    this.row(what, "", ours, aim);
  }
}

export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);

export const ms = (time: number): string => `${time.toFixed(1)} ms`;

/** The median of some rounds, with their minimum and maximum. */
export function spread(values: readonly number[], unit: string): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return `${median(values).toFixed(0)} ${unit} (${least.toFixed(0)}–${most.toFixed(0)})`;
}
