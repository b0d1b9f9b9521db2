/**
 * Sends requests to a Go program of the tests. The program reads one request per line, and answers each with one line, in order, with
 * the Go module test/go-service. It starts once for each test process, and ends with it.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { parseJson, stringifyJson } from "../../src/apimachinery/json.ts";
import type { JsonValue } from "../../src/apimachinery/objects.ts";
import { findGoProgram, type GoProgram } from "./go-program.ts";

/** The result of the operation, or the error text of Go. */
export type Answer<T = JsonValue> = { result: T; error?: never } | { error: string; result?: never };

type Child = ChildProcessByStdio<Writable, Readable, null>;

export class GoService {
  readonly #program: GoProgram;
  /** The callbacks that wait for an answer, in the order of the requests. */
  readonly #waiting: { resolve: (answer: Answer) => void; reject: (error: Error) => void }[] = [];
  #started: Promise<Child> | undefined;

  constructor(program: GoProgram) {
    this.#program = program;
  }

  /** Builds the program if necessary, and starts it. */
  async start(): Promise<void> {
    this.#started ??= this.#start();
    await this.#started;
  }

  /** Requests an operation. You may send requests before earlier ones are answered. */
  async ask<T = JsonValue>(op: string, input: unknown): Promise<Answer<T>> {
    const { name } = this.#program;
    const child = await (this.#started ??
      Promise.reject(new Error(`start the program ${name} in a hook of the suite`)));
    const answer = new Promise<Answer>((resolve, reject) => this.#waiting.push({ resolve, reject }));
    if (this.#waiting.length === 1) keepAlive(child, true);
    child.stdin.write(`${stringifyJson({ op, input })}\n`);
    const given = await answer;
    if (given.error?.startsWith("request: ")) throw new Error(`${op}: ${given.error}`);
    return given as Answer<T>;
  }

  /** Requests an operation that must succeed. */
  async resultOf<T = JsonValue>(op: string, input: unknown): Promise<T> {
    const answer = await this.ask<T>(op, input);
    if (answer.error !== undefined) throw new Error(`${op}: ${answer.error}`);
    return answer.result;
  }

  async #start(): Promise<Child> {
    const child = spawn(await findGoProgram(this.#program), { stdio: ["pipe", "pipe", "inherit"] });
    const fail = (error: Error) => {
      for (const { reject } of this.#waiting.splice(0)) reject(error);
    };
    child.on("error", fail);
    child.on("exit", (code, signal) =>
      fail(new Error(`the program ${this.#program.name} ended with ${signal ?? code}`)),
    );
    child.stdin.on("error", fail);
    createInterface(child.stdout).on("line", (line) => {
      this.#waiting.shift()?.resolve(parseJson(line) as unknown as Answer);
      if (this.#waiting.length === 0) keepAlive(child, false);
    });
    keepAlive(child, false);
    return child;
  }
}

/** Only an unanswered request keeps this process alive. The program ends when its input ends. */
function keepAlive(child: Child, isNeeded: boolean): void {
  for (const each of [child, child.stdin as Socket, child.stdout as Socket]) isNeeded ? each.ref() : each.unref();
}
