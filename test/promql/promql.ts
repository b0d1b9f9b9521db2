/** Parses PromQL and evaluates it over scrapes, with Prometheus' own code: a Go program, which is built once for each state of its sources. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { findGoProgram, type GoProgram } from "../control-plane/go-program.ts";

export const promql: GoProgram = {
  name: "promql",
  sources: import.meta.dirname,
  called: "the PromQL engine of Prometheus",
  takes: "about a minute",
  purpose: "These tests check the dashboard and the alerts with Prometheus' own code.",
};

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

/** The result of the operation, or the error text of Prometheus. */
type Answer<T> = { result: T; error?: never } | { error: string; result?: never };

/** What each expression selects. */
export const selectorsOf = (expressions: readonly string[]) => ask<Selector[]>("selectors", expressions);

/** The number of rules in a file of rules, checked as Prometheus does when it loads the file. */
export const checkRules = async (text: string) => (await ask<number>("rules", [text]))[0];

export const evaluate = (evaluations: readonly Evaluation[]) => ask<Series[]>("evaluate", evaluations);

/** Runs the program once for all inputs. The answers have their order. */
async function ask<T>(op: string, inputs: readonly unknown[]): Promise<Answer<T>[]> {
  const child = spawn(await findGoProgram(promql), { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "close");
  child.stdin.end(inputs.map((input) => `${JSON.stringify({ op, input })}\n`).join(""));
  let output = "";
  for await (const chunk of child.stdout.setEncoding("utf8")) output += chunk;
  await ended;
  const answers = output.trimEnd().split("\n");
  if (answers.length !== inputs.length) throw new Error(`${answers.length} answers to ${inputs.length} requests`);
  return answers.map((line) => JSON.parse(line) as Answer<T>);
}
