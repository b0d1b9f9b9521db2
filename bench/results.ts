/** Figures of the benchmark, kept as JSON. The plots are drawn from that file. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Latency, Round } from "./beside.ts";
import type { Compared } from "./course.ts";
import { plotsOf } from "./plots.ts";

const FILE = "results.json";

/** Milliseconds of changes, and changes per second of bursts. */
export interface CourseFigures {
  latency: Compared<number[]>;
  burst: Compared<number[]>;
}

export interface GrowthRow {
  what: string;
  /** How many bindings there are, if the rows differ in that. */
  bindings?: number;
  /** Milliseconds of a change. */
  median: Compared<number>;
}

/** Milliseconds of single changes. */
export interface FairnessFigures {
  quiet: Compared<number[]>;
  beside: Compared<number[]>;
}

export interface Figures {
  rotations: CourseFigures;
  rollouts: CourseFigures;
  growth: { rows: GrowthRow[] };
  fairness: FairnessFigures;
}

/** When and how a part was measured. */
export interface Run {
  date: string;
  kubernetes: string;
  scale: number;
}

/** The last figures of each part. */
export type AllFigures = { [Part in keyof Figures]?: Run & Figures[Part] };

export class Results {
  readonly #run: Run;
  readonly #figures: AllFigures = {};

  constructor(kubernetes: string, scale: number) {
    this.#run = { date: new Date().toISOString().slice(0, 10), kubernetes, scale };
  }

  add<Part extends keyof Figures>(part: Part, figures: Figures[Part]): void {
    Object.assign(this.#figures, { [part]: { ...this.#run, ...figures } });
  }

  /** Replaces the figures of the measured parts in the folder, and draws the plots again. */
  async save(folder: string): Promise<void> {
    await mkdir(folder, { recursive: true });
    const figures = { ...(await readResults(folder)), ...this.#figures };
    const text = JSON.stringify(figures, (_, value) => (typeof value === "number" ? Number(value.toFixed(2)) : value));
    await writeFile(join(folder, FILE), `${text}\n`);
    // The file has rounded figures.
    for (const [name, svg] of plotsOf(JSON.parse(text))) await writeFile(join(folder, name), svg);
  }
}

/** The figures of a folder, or none. */
export async function readResults(folder: string): Promise<AllFigures> {
  const text = await readFile(join(folder, FILE), "utf8").catch((error) => {
    if (error.code !== "ENOENT") throw error;
    return "{}";
  });
  return JSON.parse(text);
}

export const courseFigures = (latency: Compared<Latency>, burst: Compared<Round[]>): CourseFigures => ({
  latency: { floor: latency.floor.times, ours: latency.ours.times },
  burst: { floor: burst.floor.map(({ rate }) => rate), ours: burst.ours.map(({ rate }) => rate) },
});
