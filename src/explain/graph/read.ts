/** Reads the cluster for the graph of a binding, or of a Secret or ConfigMap. */
import type { Condition } from "../../api/binding.ts";
import type { WorkloadStatus } from "../../api/rollout.ts";
import { describeObject, type KubeObject } from "../../apimachinery/objects.ts";
import { WAITING_REASONS } from "../../apimachinery/reasons.ts";
import { useInWords } from "../../sources/uses.ts";
import { explain } from "../explain.ts";
import type { Explanation, ObjectExplanation, SourceExplanation, TargetExplanation } from "../explanation.ts";
import type { Tools } from "../tools.ts";
import { trace } from "../trace.ts";
import type { BindingTrace, Trace, Traced, WorkloadTrace } from "../trace-result.ts";
import { describe, firstLines, type Graph, type GraphEdge, type GraphNode, type NodeState } from "./graph.ts";

/** What a reason or condition means for the node that shows it. */
function stateOfReason(reason: string): NodeState {
  if (reason === "Synced") return "good";
  if (reason === "Suspended") return "neutral";
  return WAITING_REASONS.includes(reason) ? "waiting" : "bad";
}

function stateOf({ status, reason }: Pick<Condition, "status" | "reason">): NodeState {
  if (status === "True") return "good";
  return status === "False" ? (WAITING_REASONS.includes(reason) ? "waiting" : "bad") : "waiting";
}

type State = Pick<GraphNode, "state" | "status">;

/** `otherwise` is the status before there is a reason. */
const stateBy = (reason: string | undefined, otherwise: string): State =>
  reason === undefined ? { state: "waiting", status: otherwise } : { state: stateOfReason(reason), status: reason };

const COLUMN = { writers: 0, traced: 1, bindings: 2, objects: 3, users: 4 };
const TRACED = "traced";
const NO_STATE = { state: "neutral" } as const;

/** The graph of a Secret or ConfigMap: the bindings that read it, the fields that they write, and everything else that uses it. */
export function graphOfTrace(trace: Trace): Graph {
  const { object, bindings, writers, workloads } = trace;
  const title = describeObject(object.kind, object.namespace, object.name);
  const nodes: GraphNode[] = [{ id: TRACED, column: COLUMN.traced, title, lines: [], ...tracedState(trace) }];
  const edges: GraphEdge[] = [];
  for (const { binding, fields } of writers) {
    const lines = firstLines(fields, "fields");
    const [id, title] = [`writer-${binding}`, `SecretBinding ${binding}`];
    nodes.push({ id, column: COLUMN.writers, title, lines, ...NO_STATE, status: "writes it" });
    edges.push({ from: id, to: TRACED });
  }
  const [byBinding, byObject] = [new Set<string>(), new Map<string, string>()];
  for (const each of bindings) addBinding(each, nodes, edges, { byBinding, byObject });
  for (const [at, each] of workloads.entries()) {
    const node = workloadNode(each, object.namespace, `workload-${at}`);
    nodes.push(node);
    const { copy, namespace = object.namespace } = each;
    const from = copy && byObject.get(describeObject(copy.kind, namespace, copy.name));
    edges.push({ from: from ?? TRACED, to: node.id });
    for (const { binding } of each.restarts)
      if (byBinding.has(binding)) edges.push({ from: `binding-${binding}`, to: node.id, isRestart: true });
  }
  for (const [at, node] of otherUsers(trace).entries()) {
    nodes.push({ id: `user-${at}`, column: COLUMN.users, lines: [], ...NO_STATE, ...node });
    edges.push({ from: TRACED, to: `user-${at}` });
  }
  return { title: `What uses ${title}`, description: describe(`What uses ${title}`, nodes), nodes, edges };
}

function tracedState({ object: { state } }: Trace): State {
  if (state === "Found") return { state: "good", status: "exists" };
  return state === "NotFound"
    ? { state: "bad", status: "does not exist" }
    : { ...NO_STATE, status: "not readable by you" };
}

/** A binding may read the object as several sources, and several bindings may write one object. */
function addBinding(
  { binding, reason, suspended, targets }: BindingTrace,
  nodes: GraphNode[],
  edges: GraphEdge[],
  { byBinding, byObject }: { byBinding: Set<string>; byObject: Map<string, string> },
): void {
  const id = `binding-${binding}`;
  if (!byBinding.has(binding)) {
    const state = suspended ? { ...NO_STATE, status: "Suspended" } : stateBy(reason, "not reconciled yet");
    nodes.push({ id, column: COLUMN.bindings, title: `SecretBinding ${binding}`, lines: [], ...state });
    edges.push({ from: TRACED, to: id });
    byBinding.add(binding);
  }
  for (const target of targets) {
    const at = `object-${nodes.length}`;
    const lines = target.fields.map(({ path, keys }) => `${path} from ${keys.join(", ")}`);
    const title = `${target.kind} ${target.object}`;
    const state = stateBy(target.reason, "not written yet");
    nodes.push({ id: at, column: COLUMN.objects, title, lines: firstLines(lines, "fields"), ...state });
    byObject.set(title, at);
    edges.push({ from: id, to: at });
  }
}

function workloadNode(workload: WorkloadTrace, own: string, id: string): GraphNode {
  const { kind, namespace = own, name, references, keys, owner, restarts } = workload;
  const title = `${describeObject(kind, namespace, name)}${owner === undefined ? "" : ` of ${owner}`}`;
  const lines = firstLines([`by ${references.join(", ")}`, ...(keys ?? [])], "keys");
  return { id, column: COLUMN.users, title, lines, ...workloadState(kind, restarts) };
}

function workloadState(kind: string, restarts: WorkloadTrace["restarts"]): State {
  const active = restarts.filter(({ suspended }) => !suspended);
  if (active.length > 0) return { state: "good", status: "restarts when a value changes" };
  if (restarts.length > 0) return { ...NO_STATE, status: "restarts are suspended" };
  return { ...NO_STATE, status: kind === "CronJob" ? "uses it at its next run" : "not restarted by Inlay" };
}

function otherUsers(trace: Trace): { title: string; status: string }[] {
  const { serviceAccounts, certificates, connections } = trace;
  const { namespace } = trace.object;
  const title = (kind: string, name: string, of = namespace) => describeObject(kind, of, name);
  return [
    ...serviceAccounts.map((name) => ({ title: title("ServiceAccount", name), status: "pulls images with it" })),
    ...certificates.map(({ kind, namespace: of, name }) => ({
      title: title(kind, name, of),
      status: "uses it as its certificate",
    })),
    ...connections.map(({ kind, name, uses }) => ({
      title: title(kind, name),
      status: `uses it as ${uses.join(", ")}`,
    })),
  ];
}

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

function bindingState({ binding, conditions }: Explanation): State {
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

function sourceState(source: SourceExplanation): State {
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

const objectState = ({ state, status }: ObjectExplanation): State =>
  status === undefined && state === "NotFound"
    ? { state: "bad", status: "does not exist" }
    : stateBy(status?.reason, "not written yet");

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
