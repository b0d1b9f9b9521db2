/** Judges and compares objects as Argo CD and Flux do, by a Go program with the libraries that they use. */
import type { JsonObject, JsonValue } from "../../src/apimachinery/objects.ts";
import type { GoProgram } from "../control-plane/go-program.ts";
import { GoService } from "../control-plane/go-service.ts";

export const tools: GoProgram = {
  name: "gitops",
  sources: import.meta.dirname,
  called: "Argo CD's Lua interpreter and diff, and Flux's health checks",
  takes: "about 2 minutes",
  purpose: "These tests judge objects as Argo CD and Flux do.",
};
const service = new GoService(tools);

/** The hook of a suite that uses the tools: `before(useTools)`. */
export const useTools = () => service.start();

/** The table that the script returns, in the interpreter of Argo CD. */
export const runLua = (script: string, object: object) => service.resultOf<JsonObject>("lua", { script, object });

/** The status by the rules of kstatus: `InProgress`, `Failed`, `Current` or `Terminating`. */
export const kstatusOf = async (object: object): Promise<JsonValue | undefined> =>
  (await service.resultOf<JsonObject>("kstatus", object))["status"];

/** Whether the expression of a health check is true. */
export const evaluate = (expression: string, object: object) =>
  service.resultOf<boolean>("cel", { expression, object });

/** The object without what the jq path names. */
export const withoutPath = (path: string, object: object) => service.resultOf("jq.remove", { path, object });

/** What Argo CD compares: an object of git, and the one of the cluster. */
export interface Compared {
  git: object;
  live: object;
}

/**
 * The differences that Argo CD shows for each pair: with the option `ServerSideApply=true`, and without it. `schemas` is the answer of
 * /openapi/v2.
 */
export const diffsOf = (schemas: object, pairs: readonly Compared[]) =>
  service.resultOf<JsonObject[]>("diff", { schemas, pairs });
