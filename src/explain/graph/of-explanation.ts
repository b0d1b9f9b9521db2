/** The graph of a binding: its sources, the binding, the objects that it writes, and the workloads that it restarts. Pure. */
import type { WorkloadStatus } from "../../api/rollout.ts";
import { describeObject } from "../../apimachinery/objects.ts";
import { useInWords } from "../../sources/uses.ts";
import type { Explanation, ObjectExplanation, SourceExplanation, TargetExplanation } from "../explanation.ts";
import type { Trace } from "../trace-result.ts";
import { describe, firstLines, type Graph, type GraphNode, type NodeState } from "./graph.ts";
import { stateOf, stateOfReason } from "./states.ts";

/** `traces` are those of the Secrets and ConfigMaps that the binding reads: they show which workloads it restarts. */
export function graphOfExplanation(explanation: Explanation, traces: readonly Trace[]): Graph {
  const { binding, sources, targets } = explanation;
  const name = `${binding.namespace}/${binding.name}`;
  const read = sources.map(sourceNode);
  const written = targets.flatMap(objectNodes);
  const restarted = workloadNodes(explanation, traces);
  const own: GraphNode = {
    id: "binding",
    column: 1,
    title: `SecretBinding ${name}`,
    lines: [],
    ...bindingState(explanation),
  };
  const nodes = [...read, own, ...written, ...restarted];
  return {
    title: `The flow of values through SecretBinding ${name}`,
    description: describe(`From the sources of SecretBinding ${name} to its workloads`, nodes),
    nodes,
    edges: [
      ...read.map(({ id }) => ({ from: id, to: own.id })),
      ...written.map(({ id }) => ({ from: own.id, to: id })),
      ...restarted.map(({ id }) => ({ from: own.id, to: id, isRestart: true as const })),
    ],
  };
}

function bindingState({ binding, conditions }: Explanation): Pick<GraphNode, "state" | "status"> {
  const { suspended, deleting, generation, observedGeneration } = binding;
  if (deleting) return { state: "waiting", status: "being deleted" };
  if (suspended) return { state: "neutral", status: "Suspended" };
  const ready = conditions.find(({ type }) => type === "Ready");
  if (ready === undefined) return { state: "waiting", status: "not reconciled yet" };
  const isOutdated = observedGeneration !== generation;
  return {
    state: isOutdated ? "waiting" : stateOf(ready),
    status: isOutdated ? `${ready.reason}, outdated` : ready.reason,
  };
}

function sourceNode(source: SourceExplanation, at: number): GraphNode {
  const { kind, namespace, name, uses, store } = source;
  const used = uses.map(({ key, present }) => `${useInWords(key)}${present === false ? " (missing)" : ""}`);
  const lines = [...(store === undefined ? [] : [`reads ${store.reads}`]), ...firstLines(used, "keys")];
  return { id: `source-${at}`, column: 0, title: describeObject(kind, namespace, name), lines, ...sourceState(source) };
}

function sourceState(source: SourceExplanation): Pick<GraphNode, "state" | "status"> {
  const { state, optional, uses, grants, store } = source;
  if (state === "NotFound")
    return optional
      ? { state: "neutral", status: "does not exist, optional" }
      : { state: "bad", status: "does not exist" };
  if (state === "Unreadable") return { state: "neutral", status: "not readable by you" };
  if (grants?.state === "NotFound") return { state: "bad", status: "NotGranted" };
  if (store?.ready !== undefined) return { state: stateOf(store.ready), status: store.ready.reason };
  if (!optional && uses.some(({ present }) => present === false)) return { state: "bad", status: "KeyNotFound" };
  return { state: "good", status: "exists" };
}

function objectNodes(target: TargetExplanation, at: number): GraphNode[] {
  const { kind, objects, fields, message, more, selects } = target;
  const from = new Map(fields.map((field) => [field.path, field.from]));
  const nodes = objects.map((object, nth): GraphNode => {
    const lines = object.fields.map(({ path }) => fieldLine(path, from.get(path) ?? []));
    const title = describeObject(kind, object.namespace, object.name);
    return { id: `object-${at}-${nth}`, column: 2, title, lines: firstLines(lines, "fields"), ...objectState(object) };
  });
  const lines = firstLines(
    fields.map((field) => fieldLine(field.path, field.from)),
    "fields",
  );
  const others = {
    id: `object-${at}-more`,
    column: 2,
    title: `${more} more ${kind} objects`,
    lines,
    state: "neutral" as const,
  };
  if (more > 0) return [...nodes, { ...others, status: "not shown" }];
  if (objects.length > 0) return nodes;
  const title = selects ? `selected ${kind} objects` : kind;
  return [
    { ...others, title, ...(message === undefined ? { status: "none" } : { state: "bad", status: "KindNotFound" }) },
  ];
}

const fieldLine = (path: string, from: readonly string[]) =>
  from.length === 0 ? path : `${path} from ${from.join(", ")}`;

function objectState({ state, status }: ObjectExplanation): Pick<GraphNode, "state" | "status"> {
  if (status !== undefined) return { state: stateOfReason(status.reason), status: status.reason };
  return state === "NotFound"
    ? { state: "bad", status: "does not exist" }
    : { state: "waiting", status: "not written yet" };
}

const ROLLOUT_STATES: Record<WorkloadStatus["state"], [NodeState, string]> = {
  Waiting: ["waiting", "waits for its restart"],
  Rolling: ["waiting", "rolling out"],
  Done: ["good", "restarted"],
  Failed: ["bad", "failed to roll out"],
};

/** The workloads of the present rollout, and all others that the binding restarts. If it is not known which, the rules in words. */
function workloadNodes({ binding, rollout, conditions }: Explanation, traces: readonly Trace[]): GraphNode[] {
  if (rollout === undefined) return [];
  const own = `${binding.namespace}/${binding.name}`;
  const pending = (rollout.pending?.workloads ?? []).map(({ kind, namespace, name, step, state }) => ({
    title: describeObject(kind, namespace, name),
    lines: step === undefined ? [] : [`step ${step}`],
    as: ROLLOUT_STATES[state],
  }));
  const condition = conditions.find(({ type }) => type === "RolledOut");
  const idle: [NodeState, string] = rollout.suspended
    ? ["neutral", "restarts are suspended"]
    : condition?.status === "True"
      ? ["good", condition.reason]
      : ["neutral", "restarts when a value changes"];
  const found = traces.flatMap(({ object, workloads }) =>
    workloads.flatMap(({ kind, namespace = object.namespace, name, references, restarts }) =>
      restarts.some(({ binding }) => binding === own)
        ? [{ title: describeObject(kind, namespace, name), lines: [`by ${references.join(", ")}`], as: idle }]
        : [],
    ),
  );
  const rules = rollout.restarts.map((title) => ({ title, lines: [], as: idle }));
  const known = new Map([...found, ...pending].map((each) => [each.title, each]));
  const all = known.size === 0 ? rules : [...known.values()];
  return all.map(({ title, lines, as: [state, status] }, at) => ({
    id: `workload-${at}`,
    column: 3,
    title,
    lines,
    state,
    status,
  }));
}
