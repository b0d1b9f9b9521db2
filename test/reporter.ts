/** Prints a run of the tests: mocha's events come in, out goes the spec reporter's text and `N passed, N failed`. */
import { type MochaOptions, type Runner, reporters } from "mocha";

class PassedAndFailed extends reporters.Spec {
  constructor(runner: Runner, options: MochaOptions) {
    super(runner, options);
    // Registered after the ones of Spec, so this is the last line.
    runner.once("end", () => console.log(`${this.stats.passes} passed, ${this.stats.failures} failed`));
  }
}

// The name by which require() takes a class itself out of an ES module; mocha loads reporters with it.
export { PassedAndFailed as "module.exports" };
