/** Says how the oracle is built: once for each state of its sources. */
import { findGoProgram } from "../control-plane/go-program.ts";

/** The path of the program, after building it where that is still to be done. */
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
