/**
 * Prints the results of the tests. It reads mocha's events, and prints the spec reporter's text and `N passed, N failed`.
 */
import { type MochaOptions, type Runner, reporters } from "mocha";

class PassedAndFailed extends reporters.Spec {
  constructor(runner: Runner, options: MochaOptions) {
    super(runner, options);
    // This listener is registered after those of Spec, so its line is the last.
    runner.once("end", () => console.log(`${this.stats.passes} passed, ${this.stats.failures} failed`));
  }
}

// require() of an ES module returns the export with this name, and mocha loads reporters with require().
export { PassedAndFailed as "module.exports" };
