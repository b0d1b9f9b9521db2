/** Parses PromQL and evaluates it over scrapes, with Prometheus' own code in a Go program. */
import type { GoProgram } from "../control-plane/go-program.ts";
import { type Answer, GoService } from "../control-plane/go-service.ts";

export const promql: GoProgram = {
  name: "promql",
  sources: import.meta.dirname,
  called: "the PromQL engine of Prometheus",
  takes: "about a minute",
  purpose: "These tests check the dashboard and the alerts with Prometheus' own code.",
};
const service = new GoService(promql);

/** The hook of a suite that uses the engine: `before(usePromql)`. */
export const usePromql = () => service.start();

/** A metric that an expression selects. */
export interface Selector {
  metric: string;
  matchers: { name: string; type: "=" | "!=" | "=~" | "!~"; value: string }[];
  /** The labels by which the expression groups or joins it. */
  grouping: string[];
}

/** What a target answered at a time in seconds. Without a text, it was down. */
export interface Scrape {
  at: number;
  instance: string;
  text: string;
}

export interface Evaluation {
  expr: string;
  scrapes: readonly Scrape[];
  start: number;
  end: number;
  step: number;
}

/** A series of the result, with the times at which it has a value. */
export interface Series {
  labels: Record<string, string>;
  times: number[];
}

/** What each expression selects. */
export const selectorsOf = (expressions: readonly string[]) => ask<Selector[]>("selectors", expressions);

/** The number of rules in a file of rules, checked as Prometheus does when it loads the file. */
export const checkRules = async (text: string) => (await ask<number>("rules", [text]))[0];

export const evaluate = (evaluations: readonly Evaluation[]) => ask<Series[]>("evaluate", evaluations);

/** The answers of Prometheus to all inputs, in their order. */
const ask = <T>(op: string, inputs: readonly unknown[]): Promise<Answer<T>[]> =>
  Promise.all(inputs.map((input) => service.ask<T>(op, input)));
