/** Sends requests to the oracle, a Go program that runs Crossplane's own code and Go's standard library on a value. */
import type { JsonValue } from "../../src/apimachinery/objects.ts";
import { type Answer, GoService } from "../control-plane/go-service.ts";

export type { Answer };

const oracle = new GoService({
  name: "oracle",
  sources: import.meta.dirname,
  called: "the oracle (Crossplane's field paths)",
  takes: "about a minute",
  purpose: "These tests compare Inlay with Crossplane's own code.",
});

/** The hook of a suite that uses the oracle: `before(useOracle)`. Building the oracle takes longer than a test may take. */
export async function useOracle(this: Mocha.Context): Promise<void> {
  this.timeout("10m");
  await oracle.start();
}

/** Requests an operation of test/oracle/*.go. You may send requests before earlier ones are answered. */
export const ask = (op: string, input: JsonValue): Promise<Answer> => oracle.ask(op, input);
