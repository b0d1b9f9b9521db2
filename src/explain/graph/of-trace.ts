/** The graph of a Secret or ConfigMap: the bindings that read it, the fields that they write, and everything else that uses it. Pure. */
import { describeObject } from "../../apimachinery/objects.ts";
import type { BindingTrace, Trace, WorkloadTrace } from "../trace-result.ts";
import { describe, firstLines, type Graph, type GraphEdge, type GraphNode } from "./graph.ts";
import { stateOfReason } from "./states.ts";

type State = Pick<GraphNode, "state" | "status">;

const COLUMN = { writers: 0, traced: 1, bindings: 2, objects: 3, users: 4 };
const TRACED = "traced";
const NO_STATE = { state: "neutral" } as const;

export function graphOfTrace(trace: Trace): Graph {
  const { object, bindings, writers, workloads } = trace;
  const title = describeObject(object.kind, object.namespace, object.name);
  const nodes: GraphNode[] = [{ id: TRACED, column: COLUMN.traced, title, lines: [], ...tracedState(trace) }];
  const edges: GraphEdge[] = [];
  for (const { binding, fields } of writers) {
    const lines = firstLines(fields, "fields");
    const status = "writes it";
    nodes.push({
      id: `writer-${binding}`,
      column: COLUMN.writers,
      title: `SecretBinding ${binding}`,
      lines,
      ...NO_STATE,
      status,
    });
    edges.push({ from: `writer-${binding}`, to: TRACED });
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
    const state: State = suspended
      ? { ...NO_STATE, status: "Suspended" }
      : reason === undefined
        ? { state: "waiting", status: "not reconciled yet" }
        : { state: stateOfReason(reason), status: reason };
    nodes.push({ id, column: COLUMN.bindings, title: `SecretBinding ${binding}`, lines: [], ...state });
    edges.push({ from: TRACED, to: id });
    byBinding.add(binding);
  }
  for (const target of targets) {
    const at = `object-${nodes.length}`;
    const lines = target.fields.map(({ path, keys }) => `${path} from ${keys.join(", ")}`);
    const state: State =
      target.reason === undefined
        ? { state: "waiting", status: "not written yet" }
        : { state: stateOfReason(target.reason), status: target.reason };
    nodes.push({
      id: at,
      column: COLUMN.objects,
      title: `${target.kind} ${target.object}`,
      lines: firstLines(lines, "fields"),
      ...state,
    });
    byObject.set(`${target.kind} ${target.object}`, at);
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

function otherUsers({
  object,
  serviceAccounts,
  certificates,
  connections,
}: Trace): { title: string; status: string }[] {
  const { namespace } = object;
  const title = (kind: string, name: string, of = namespace) => describeObject(kind, of, name);
  return [
    ...serviceAccounts.map((name) => ({ title: title("ServiceAccount", name), status: "pulls images with it" })),
    ...certificates.map((each) => ({
      title: title(each.kind, each.name, each.namespace),
      status: "uses it as its certificate",
    })),
    ...connections.map(({ kind, name, uses }) => ({
      title: title(kind, name),
      status: `uses it as ${uses.join(", ")}`,
    })),
  ];
}
