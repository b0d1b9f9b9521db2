/** Reads the cluster for a graph. */
import type { KubeObject } from "../../apimachinery/objects.ts";
import { explain } from "../explain.ts";
import type { SourceExplanation } from "../explanation.ts";
import type { Tools } from "../tools.ts";
import { trace } from "../trace.ts";
import type { Traced } from "../trace-result.ts";
import type { Graph } from "./graph.ts";
import { graphOfExplanation } from "./of-explanation.ts";
import { graphOfTrace } from "./of-trace.ts";

/** Throws Error as `explain` does. */
export async function explainAsGraph(tools: Tools, namespace: string, name: string): Promise<Graph> {
  const explanation = await explain(tools, namespace, name);
  const read = explanation.rollout === undefined ? [] : explanation.sources.flatMap(tracedOf);
  return graphOfExplanation(explanation, await Promise.all(read.map((each) => trace(tools, each))));
}

/** Throws Error as `trace` does. */
export async function traceAsGraph(tools: Tools, traced: Traced): Promise<Graph> {
  return graphOfTrace(await trace(tools, traced));
}

function tracedOf({ kind, namespace, name, state }: SourceExplanation): Traced[] {
  const isTraced = (each: KubeObject["kind"]): each is Traced["kind"] => each === "Secret" || each === "ConfigMap";
  return isTraced(kind) && namespace !== undefined && state === "Found" ? [{ kind, namespace, name }] : [];
}
