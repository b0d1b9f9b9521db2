/** Workloads come in; those of more than one replica go out whose pods no PodDisruptionBudget selects, as the binding's account sees them. */

import type { Dependent } from "../../api/rollout.ts";
import { isObject } from "../../apimachinery/json.ts";
import { type LabelSelector, matchesLabels } from "../../apimachinery/label-selector.ts";
import type { KubeObject } from "../../apimachinery/objects.ts";
import { DISRUPTION_BUDGETS } from "../../apimachinery/resources.ts";
import { refusal } from "../../kube/access-error.ts";
import type { Client } from "../../kube/client.ts";
import type { Identity } from "../../kube/identity.ts";

/** One list for each namespace; none where no workload has more than one replica. Throws Problem. */
export async function unbudgeted(
  client: Client,
  identity: Identity,
  dependents: readonly Dependent[],
): Promise<Dependent[]> {
  const many = Map.groupBy(
    dependents.filter(({ workload }) => workload.isMany),
    ({ ref }) => ref.namespace ?? "",
  );
  const without: Dependent[] = [];
  for (const [namespace, workloads] of many) {
    const selectors = await selectorsIn(client, identity, namespace);
    const isSelected = ({ workload }: Dependent) => selectors.some((each) => matchesLabels(each, workload.labels));
    without.push(...workloads.filter((each) => !isSelected(each)));
  }
  return without;
}

async function selectorsIn(client: Client, identity: Identity, namespace: string): Promise<LabelSelector[]> {
  const found: LabelSelector[] = [];
  try {
    for await (const page of client.list(identity, DISRUPTION_BUDGETS, namespace))
      found.push(...page.flatMap(selectorOf));
  } catch (error) {
    throw refusal(error, { identity, ref: { resource: DISRUPTION_BUDGETS, namespace }, verbs: ["list"] }, "list");
  }
  return found;
}

/** One without a selector selects nothing, and one that is empty everything. */
function selectorOf({ spec }: KubeObject): LabelSelector[] {
  const selector = isObject(spec) ? spec["selector"] : undefined;
  return isObject(selector) ? [selector as LabelSelector] : [];
}
