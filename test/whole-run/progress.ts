/** The reporter of `npm test`: prints a line for each file that has ended, and stores the failures for the summary. */
import { appendFileSync, mkdirSync } from "node:fs";
import { type Hook, type MochaOptions, type Runner, reporters, type Test } from "mocha";
import { FAILURES, type Failure, nameOf, readResult, runFolder } from "./results.ts";

class Progress extends reporters.Base {
  readonly #began = Date.now();
  readonly #files = Number(process.env["INLAY_TEST_FILES"]);
  #ended = 0;
  /** The results of one file. Its events arrive together when it has ended. */
  #file = { name: "", passed: 0, failures: [] as Failure[] };

  constructor(runner: Runner, options: MochaOptions) {
    super(runner, options);
    mkdirSync(runFolder, { recursive: true });
    runner.on("pass", (test) => {
      this.#of(test).passed++;
    });
    runner.on("fail", (test, error: Error) => {
      const { message, stack = message } = error;
      const failure = {
        file: this.#of(test).name,
        title: test.fullTitle(),
        text: stack.includes(message) ? stack : `${message}\n${stack}`,
      };
      this.#file.failures.push(failure);
      appendFileSync(FAILURES, `${JSON.stringify(failure)}\n`);
    });
    runner.once("end", () => this.#flush());
  }

  #of(test: Test | Hook) {
    const name = test.file === undefined ? this.#file.name : nameOf(test.file);
    if (name !== this.#file.name) {
      this.#flush();
      this.#file = { name, passed: 0, failures: [] };
      // Without workers, the events of a file arrive one by one.
      if (this.#files > 1) setImmediate(() => this.#flush());
    }
    return this.#file;
  }

  #flush(): void {
    const { name, passed, failures } = this.#file;
    // A hook that fails before the first test belongs to no file.
    if (name === "" && failures.length === 0) return;
    this.#file = { name: "", passed: 0, failures: [] };
    const seconds = ((readResult(name)?.ms ?? 0) / 1000).toFixed(1);
    const minutes = ((Date.now() - this.#began) / 60_000).toFixed(1);
    const counts = failures.length === 0 ? `${passed} passed` : `${passed} passed, ${failures.length} FAILED`;
    console.log(
      `${minutes.padStart(5)} min  ${++this.#ended}/${this.#files}  ${name || "before the tests"}  ${counts}  ${seconds} s`,
    );
    for (const { title, text } of failures) console.log(`\n  ${title}\n${indent(text)}\n`);
  }
}

const indent = (text: string) =>
  text
    .split("\n")
    .map((line) => `    ${line}`)
    .join("\n");

// mocha loads reporters by require(), which returns a class of an ES module itself only with this export name.
export { Progress as "module.exports" };
