/** Builds the oracle, once for each state of its sources. */
import { findGoProgram } from "../control-plane/go-program.ts";

/** The path of the program, which is built first if necessary. */
export function findOracle(env: Record<string, string | undefined> = process.env): Promise<string> {
  return findGoProgram(
    {
      name: "oracle",
      sources: import.meta.dirname,
      called: "the oracle (Crossplane's field paths)",
      takes: "about a minute",
      purpose: "These tests compare Inlay with Crossplane's own code.",
    },
    env,
  );
}
