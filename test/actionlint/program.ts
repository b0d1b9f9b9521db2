/** Finds actionlint, which checks the workflows of .github/. It is built once from go.mod into a cache. */
import { findGoProgram } from "../control-plane/go-program.ts";

/** The path of the program, which is built if necessary. */
export function findActionlint(): Promise<string> {
  return findGoProgram({
    name: "actionlint",
    sources: import.meta.dirname,
    package: "github.com/rhysd/actionlint/cmd/actionlint",
    called: "actionlint",
    takes: "some seconds",
    purpose: "This test checks the workflows with actionlint.",
  });
}
