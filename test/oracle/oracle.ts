/** Sends requests to the oracle, a Go program that runs Crossplane's own code and Go's standard library on a value. */
import type { JsonValue } from "../../src/apimachinery/objects.ts";
import type { GoProgram } from "../control-plane/go-program.ts";
import { type Answer, GoService } from "../control-plane/go-service.ts";

export type { Answer };

export const oracle: GoProgram = {
  name: "oracle",
  sources: import.meta.dirname,
  called: "the oracle (Crossplane's field paths)",
  takes: "about a minute",
  purpose: "These tests compare Inlay with Crossplane's own code.",
};
const service = new GoService(oracle);

/** The hook of a suite that uses the oracle: `before(useOracle)`. */
export const useOracle = () => service.start();

/** Requests an operation of test/oracle/*.go. You may send requests before earlier ones are answered. */
export const ask = (op: string, input: JsonValue): Promise<Answer> => service.ask(op, input);
