/** Workloads come in; those of more than one replica go out whose pods no PodDisruptionBudget selects, as the binding's account sees them. */

import { at } from "../../apimachinery/fields.ts";
import { isObject } from "../../apimachinery/json.ts";
import { type LabelSelector, matchesLabels } from "../../apimachinery/label-selector.ts";
import type { KubeObject } from "../../apimachinery/objects.ts";
import { DISRUPTION_BUDGETS } from "../../apimachinery/resources.ts";
import type { Client } from "../../kube/client.ts";
import { listAll } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import type { Dependent } from "../types.ts";

/** Of comparing the selectors of a namespace with its workloads, in labels and values: some 0.1 s. */
const MAX_EFFORT = 20_000_000;

/**
 * One list for each namespace; none where no workload has more than one replica. A workload counts as one without a budget once
 * the selectors take too long to compare. Throws Problem.
 */
export async function withoutDisruptionBudget(
  client: Pick<Client, "list">,
  identity: Identity,
  dependents: readonly Dependent[],
): Promise<Dependent[]> {
  const many = dependents.filter(({ workload }) => workload.isMany);
  const without: Dependent[] = [];
  for (const [namespace, workloads] of Map.groupBy(many, ({ ref }) => ref.namespace ?? "")) {
    const selectors = (await listAll(client, identity, DISRUPTION_BUDGETS, namespace)).flatMap(selectorOf);
    let effort = MAX_EFFORT;
    const isSelected = ({ workload }: Dependent) =>
      selectors.some(({ selector, size }) => {
        effort -= size;
        return effort >= 0 && matchesLabels(selector, workload.labels);
      });
    without.push(...workloads.filter((each) => !isSelected(each)));
  }
  return without;
}

/** One without a selector selects nothing, and one that is empty everything. */
function selectorOf({ spec }: KubeObject): { selector: LabelSelector; size: number }[] {
  const selector = at(spec, "selector");
  return isObject(selector) ? [{ selector: selector as LabelSelector, size: sizeOf(selector as LabelSelector) }] : [];
}

const sizeOf = ({ matchLabels = {}, matchExpressions = [] }: LabelSelector): number =>
  matchExpressions.reduce((sum, { values = [] }) => sum + 1 + values.length, Object.keys(matchLabels).length + 1);
