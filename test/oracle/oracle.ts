/**
 * Sends requests to the oracle, a Go program that runs Crossplane's own code and Go's standard library on a value. It
 * starts once for each test process, and ends with it.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { parseJson, stringifyJson } from "../../src/apimachinery/json.ts";
import type { JsonValue } from "../../src/apimachinery/objects.ts";
import { findOracle } from "./build.ts";

/** The result of the operation, or the error text of Go. */
export type Answer = { result: JsonValue; error?: never } | { error: string; result?: never };

type Child = ChildProcessByStdio<Writable, Readable, null>;

/** The callbacks that wait for an answer, in the order of the requests. */
const waiting: { resolve: (answer: Answer) => void; reject: (error: Error) => void }[] = [];
let started: Promise<Child> | undefined;

/** The hook of a suite that uses the oracle: `before(useOracle)`. Building the oracle takes longer than a test may take. */
export async function useOracle(this: Mocha.Context): Promise<void> {
  this.timeout("10m");
  started ??= start();
  await started;
}

/** Requests an operation of test/oracle/*.go. You may send requests before earlier ones are answered. */
export async function ask(op: string, input: JsonValue): Promise<Answer> {
  const child = await (started ?? Promise.reject(new Error("call before(useOracle) in the suite")));
  const answer = new Promise<Answer>((resolve, reject) => waiting.push({ resolve, reject }));
  if (waiting.length === 1) keepAlive(child, true);
  child.stdin.write(`${stringifyJson({ op, input })}\n`);
  const given = await answer;
  if (given.error?.startsWith("request: ")) throw new Error(`${op}: ${given.error}`);
  return given;
}

async function start(): Promise<Child> {
  const child = spawn(await findOracle(), { stdio: ["pipe", "pipe", "inherit"] });
  const fail = (error: Error) => {
    for (const { reject } of waiting.splice(0)) reject(error);
  };
  child.on("error", fail);
  child.on("exit", (code, signal) => fail(new Error(`the oracle ended with ${signal ?? code}`)));
  child.stdin.on("error", fail);
  createInterface(child.stdout).on("line", (line) => {
    waiting.shift()?.resolve(parseJson(line) as unknown as Answer);
    if (waiting.length === 0) keepAlive(child, false);
  });
  keepAlive(child, false);
  return child;
}

/** Only an unanswered request keeps this process alive. The oracle ends when its input ends. */
function keepAlive(child: Child, isNeeded: boolean): void {
  for (const each of [child, child.stdin as Socket, child.stdout as Socket]) isNeeded ? each.ref() : each.unref();
}
