/** Judges and compares objects as Argo CD and Flux do, by a Go program with the libraries that they use. */
import type { JsonObject, JsonValue } from "../../src/apimachinery/objects.ts";
import type { GoProgram } from "../control-plane/go-program.ts";
import { GoService } from "../control-plane/go-service.ts";

export const tools: GoProgram = {
  name: "gitops",
  sources: import.meta.dirname,
  called: "Argo CD's Lua interpreter and Flux's health checks",
  takes: "about a minute",
  purpose: "These tests judge objects as Argo CD and Flux do.",
};
const service = new GoService(tools);

/** The hook of a suite that uses the tools: `before(useTools)`. */
export const useTools = () => service.start();

async function ask(op: string, input: JsonValue): Promise<JsonValue> {
  const answer = await service.ask(op, input);
  if (answer.error !== undefined) throw new Error(`${op}: ${answer.error}`);
  return answer.result;
}

/** The table that the script returns, in the interpreter of Argo CD. */
export const runLua = async (script: string, object: object): Promise<JsonObject> =>
  (await ask("lua", { script, object: asJson(object) })) as JsonObject;

/** The status by the rules of kstatus: `InProgress`, `Failed`, `Current` or `Terminating`. */
export const kstatusOf = async (object: object): Promise<JsonValue | undefined> =>
  ((await ask("kstatus", asJson(object))) as JsonObject)["status"];

/** Whether the expression of a health check is true. */
export const evaluate = async (expression: string, object: object): Promise<boolean> =>
  (await ask("cel", { expression, object: asJson(object) })) as boolean;

/** The object without what the jq path names. */
export const withoutPath = (path: string, object: object): Promise<JsonValue> =>
  ask("jq.remove", { path, object: asJson(object) });

const asJson = (object: object): JsonValue => JSON.parse(JSON.stringify(object)) as JsonValue;
