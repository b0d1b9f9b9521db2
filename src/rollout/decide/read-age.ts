/**
 * Reads whether all pods of a workload's present template were created after a change: in the version of the change, the API server has
 * no ReplicaSet or ControllerRevision of that template.
 */
import { at, numberOf } from "../../apimachinery/fields.ts";
import { isObject } from "../../apimachinery/json.ts";
import { type LabelSelector, selectorText } from "../../apimachinery/label-selector.ts";
import type { KubeObject, Resource } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { CONTROLLER_REVISIONS, REPLICA_SETS } from "../../apimachinery/resources.ts";
import { attempt, WRITE_VERBS } from "../../kube/access-error.ts";
import { ApiError } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import type { Dependent } from "../types.ts";

/** A change of values that a workload uses. */
export interface SourceChange {
  /** The version of the cluster that certainly has it. */
  version: string;
  /** When it happened at the latest, in seconds of the epoch, if the API server has recorded that. */
  at?: number;
}

/** The most revisions of a workload that are read. */
const MAX_REVISIONS = 100;
/** Times have a resolution of one second, and the clocks of API servers differ. */
const APART_S = 2;

const REVISION = "deployment.kubernetes.io/revision";

/** The kind of the revisions of a kind, and the one of the present template among them. */
interface Revisions {
  resource: Resource;
  present(workload: KubeObject, all: readonly KubeObject[]): KubeObject | undefined;
}

const KINDS: Readonly<Record<string, Revisions>> = {
  Deployment: {
    resource: REPLICA_SETS,
    present: (workload, all) => {
      const revision = workload.metadata.annotations?.[REVISION];
      return revision === undefined
        ? undefined
        : all.find(({ metadata }) => metadata.annotations?.[REVISION] === revision);
    },
  },
  StatefulSet: {
    resource: CONTROLLER_REVISIONS,
    present: (workload, all) => {
      const name = at(workload, "status", "updateRevision");
      return all.find(({ metadata }) => metadata.name === name);
    },
  },
  DaemonSet: {
    resource: CONTROLLER_REVISIONS,
    // Its controller increments the number of a revision whose template returns.
    present: (_, all) => all.toSorted((a, b) => numberOf(at(b, "revision")) - numberOf(at(a, "revision")))[0],
  },
};

/**
 * False if that is not certain, also if the account lacks a permission. If the API server no longer has the version of the change, the times
 * of both decide.
 */
export async function isTemplateYounger(
  client: Pick<Client, "get" | "getAt" | "list">,
  identity: Identity,
  { ref, version }: Pick<Dependent, "ref" | "version">,
  change: SourceChange,
): Promise<boolean> {
  const kind = ref.resource.group === "apps" ? KINDS[ref.resource.kind] : undefined;
  if (kind === undefined) return false;
  const workload = await attempt(getIfExists({ client, identity, ref, verbs: WRITE_VERBS }));
  if (workload === undefined || workload instanceof Problem) return false;
  const { uid, generation } = workload.metadata;
  // The revision of a template that is not observed is not known.
  const isObserved = generation === version.generation && at(workload, "status", "observedGeneration") === generation;
  if (uid !== version.uid || !isObserved) return false;
  const namespace = ref.namespace ?? "";
  try {
    const revisions = await ownedBy(client, identity, kind.resource, workload, namespace);
    const present = kind.present(workload, revisions);
    if (present === undefined) return false;
    const { name, creationTimestamp = "" } = present.metadata;
    try {
      const then = await client.getAt(identity, { resource: kind.resource, namespace, name }, change.version);
      return then?.metadata.uid !== present.metadata.uid;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return change.at !== undefined && Date.parse(creationTimestamp) / 1000 >= change.at + APART_S;
    }
  } catch (error) {
    if (error instanceof ApiError || error instanceof Problem) return false;
    throw error;
  }
}

/** None if there are too many. Throws ApiError. */
async function ownedBy(
  client: Pick<Client, "list">,
  identity: Identity,
  resource: Resource,
  workload: KubeObject,
  namespace: string,
): Promise<readonly KubeObject[]> {
  const selector = at(workload, "spec", "selector");
  const labels = selectorText((isObject(selector) ? selector : {}) as LabelSelector);
  if (labels === "") return [];
  const found: KubeObject[] = [];
  for await (const page of client.list(identity, resource, namespace, { labels })) {
    found.push(...page);
    if (found.length > MAX_REVISIONS) return [];
  }
  return found.filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === workload.metadata.uid));
}
