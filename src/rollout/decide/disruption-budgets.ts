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

/** One list for each namespace; none where no workload has more than one replica. Throws Problem. */
export async function withoutDisruptionBudget(
  client: Pick<Client, "list">,
  identity: Identity,
  dependents: readonly Dependent[],
): Promise<Dependent[]> {
  const many = dependents.filter(({ workload }) => workload.isMany);
  const without: Dependent[] = [];
  for (const [namespace, workloads] of Map.groupBy(many, ({ ref }) => ref.namespace ?? "")) {
    const selectors = (await listAll(client, identity, DISRUPTION_BUDGETS, namespace)).flatMap(selectorOf);
    const isSelected = ({ workload }: Dependent) => selectors.some((each) => matchesLabels(each, workload.labels));
    without.push(...workloads.filter((each) => !isSelected(each)));
  }
  return without;
}

/** One without a selector selects nothing, and one that is empty everything. */
function selectorOf({ spec }: KubeObject): LabelSelector[] {
  const selector = at(spec, "selector");
  return isObject(selector) ? [selector as LabelSelector] : [];
}
