/**
 * Finds the workloads with more than one replica whose pods no PodDisruptionBudget selects, as the binding's account sees them.
 */
import { at } from "../../apimachinery/fields.ts";
import { isObject } from "../../apimachinery/json.ts";
import { type LabelSelector, matchesLabels } from "../../apimachinery/label-selector.ts";
import type { KubeObject } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { DISRUPTION_BUDGETS } from "../../apimachinery/resources.ts";
import { attempt } from "../../kube/access-error.ts";
import type { Client } from "../../kube/client.ts";
import { listAll } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import { mapConcurrent } from "../../workqueue/map-concurrent.ts";
import type { Dependent } from "../types.ts";

/** The effort of comparing the selectors of a namespace with its workloads, in labels and values: about 0.1 s. */
const MAX_EFFORT = 20_000_000;

interface Unbudgeted {
  without: Dependent[];
  /** The namespaces whose budgets can't be read, and why. */
  unknown: ReadonlyMap<string, Problem>;
}

/**
 * Lists the budgets once for each namespace that has a workload with more than one replica. If the selectors take too long to
 * compare, the workloads count as having no budget. Throws Problem if no namespace can be read.
 */
export async function withoutDisruptionBudget(
  client: Pick<Client, "list">,
  identity: Identity,
  dependents: readonly Dependent[],
): Promise<Unbudgeted> {
  const many = dependents.filter(({ workload }) => workload.isMany);
  const unknown = new Map<string, Problem>();
  const namespaces = [...Map.groupBy(many, ({ ref }) => ref.namespace ?? "")];
  const found = await mapConcurrent(namespaces, async ([namespace, workloads]) => {
    const listed = await attempt(listAll(client, identity, DISRUPTION_BUDGETS, namespace));
    if (!(listed instanceof Problem)) return withoutAny(listed, workloads);
    unknown.set(namespace, listed);
    return [];
  });
  const [first] = unknown.values();
  if (first !== undefined && dependents.every(({ ref }) => unknown.has(ref.namespace ?? ""))) throw first;
  return { without: found.flat(), unknown };
}

/** The workloads of one namespace that none of its budgets selects. */
function withoutAny(budgets: readonly KubeObject[], workloads: readonly Dependent[]): Dependent[] {
  const selectors = budgets.flatMap(selectorOf);
  let effort = MAX_EFFORT;
  const isSelected = ({ workload }: Dependent) =>
    selectors.some(({ selector, size }) => {
      effort -= size;
      return effort >= 0 && matchesLabels(selector, workload.labels);
    });
  return workloads.filter((each) => !isSelected(each));
}

/** A budget without a selector selects nothing, and an empty selector selects everything. */
function selectorOf({ spec }: KubeObject): { selector: LabelSelector; size: number }[] {
  const selector = at(spec, "selector");
  return isObject(selector) ? [{ selector: selector as LabelSelector, size: sizeOf(selector as LabelSelector) }] : [];
}

const sizeOf = ({ matchLabels = {}, matchExpressions = [] }: LabelSelector): number =>
  matchExpressions.reduce((sum, { values = [] }) => sum + 1 + values.length, Object.keys(matchLabels).length + 1);
