/**
 * Warns of bindings in an earlier sync wave of Argo CD than what they wait for. Argo CD applies a wave when everything before it is healthy,
 * and such a binding gets healthy only after that, so each sync fails. Pure.
 */
import { FieldPath, keySegment } from "../apimachinery/field-path.ts";
import { listAt } from "../apimachinery/fields.ts";
import { isObject } from "../apimachinery/json.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import {
  describeObject,
  idOf,
  idOfObject,
  type JsonObject,
  type KubeObject,
  type ObjectRef,
} from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SERVICE_ACCOUNTS } from "../apimachinery/resources.ts";
import type { AnalysedBinding, Analysis } from "../render/analysis.ts";
import type { Mistake } from "../render/documents.ts";
import { FROM_CLUSTER, type Inputs } from "../render/inputs.ts";
import { watchedSource } from "../targets/references.ts";
import { namedWorkloads } from "./named-workloads.ts";

const WAVE = "argocd.argoproj.io/sync-wave";
const HOOK = "argocd.argoproj.io/hook";
const RBAC = "rbac.authorization.k8s.io/";
/** Their place in the order of a sync. */
const PHASES = new Map([
  ["PreSync", -1],
  ["PostSync", 1],
]);
const MAX_NAMED = 3;
const PLACE = String(new FieldPath(["metadata", "annotations", WAVE].map(keySegment)));

/** When Argo CD applies an object: its phase, then its wave. */
interface Turn {
  readonly phase: number;
  readonly wave: number;
}

interface Placed {
  readonly object: KubeObject & JsonObject;
  readonly turn: Turn;
}

export function earlyBindings({ inputs, bindings }: Analysis): Mistake[] {
  const placed = new Map(
    inputs.objects.flatMap(({ document, object }): [string, Placed][] =>
      document.file === FROM_CLUSTER ? [] : [[idOfObject(object), { object, turn: turnOf(object) }]],
    ),
  );
  if (![...placed.values()].some(({ turn }) => turn.wave !== 0 || turn.phase !== 0)) return [];
  const access = accessIn(placed.values());
  // A composed binding has no wave: Argo CD does not apply it.
  return bindings
    .filter(({ each }) => each.from === undefined)
    .flatMap((each) => earlyIn(each, placed, access, inputs));
}

function earlyIn(
  { each, references, selection }: AnalysedBinding,
  placed: ReadonlyMap<string, Placed>,
  access: ReadonlyMap<string, readonly Placed[]>,
  { kinds }: Pick<Inputs, "kinds">,
): Mistake[] {
  const { binding } = each;
  const { namespace = "" } = binding.metadata;
  const own = turnOf(binding as unknown as KubeObject);
  const account = { resource: SERVICE_ACCOUNTS, namespace, name: binding.spec.serviceAccountName };
  const at = (ref: ObjectRef | undefined): Placed[] => {
    const found = ref && placed.get(idOf(ref));
    return found === undefined ? [] : [found];
  };
  const targets = selection.objects.flatMap(({ target, ref }) =>
    ref instanceof Problem || target.create !== undefined ? [] : at(ref),
  );
  const sources = references.parsedSources.flatMap(({ name, store, policy }) => {
    if (policy.optional) return [];
    return [...at(watchedSource(references, name)), ...at(store?.connection?.ref)];
  });
  // Workloads that are only selected may be missing.
  const workloads = namedWorkloads(binding, kinds).flatMap(({ ref }) => at(ref));
  const late = (reason: Mistake["reason"], needs: string, needed: readonly Placed[]): Mistake[] => {
    const later = needed.filter(({ turn }) => compare(own, turn) < 0);
    const last = later
      .map(({ turn }) => turn)
      .toSorted(compare)
      .at(-1);
    if (last === undefined) return [];
    const names = [...new Set(later.map(({ object }) => describe(object)))];
    const what = `Argo CD applies the binding in ${textOf(own)}, before ${needs} ${firstOf(names, MAX_NAMED)} in ${textOf(last)}: the binding can't get healthy before that, so the sync fails and applies nothing of the later waves; put the binding into ${textOf(last)} or a later one`;
    return [each.mistakeAt(reason, { at: [PLACE], what })];
  };
  return [
    ...late("TargetNotFound", "its target", targets),
    ...late("SourceNotFound", "its source", sources),
    ...late("WorkloadNotFound", "the workload of its rollout", workloads),
    ...late("ServiceAccountNotFound", "its account", at(account)),
    ...late("Forbidden", "the permissions of its account:", access.get(`${namespace}/${account.name}`) ?? []),
  ];
}

/** RoleBindings and ClusterRoleBindings with the roles that they grant, by the account that they grant them to. */
function accessIn(placed: Iterable<Placed>): Map<string, Placed[]> {
  const ofRbac = [...placed].filter(({ object }) => object.apiVersion.startsWith(RBAC));
  const access = new Map<string, Placed[]>();
  for (const each of ofRbac) {
    const { object } = each;
    const { roleRef } = object;
    const roles = ofRbac.filter(
      ({ object: { kind, metadata } }) =>
        isObject(roleRef) &&
        kind === roleRef["kind"] &&
        metadata.name === roleRef["name"] &&
        (kind === "ClusterRole" || metadata.namespace === object.metadata.namespace),
    );
    for (const subject of listAt(object, "subjects").filter(isObject)) {
      if (subject["kind"] !== "ServiceAccount") continue;
      const key = `${subject["namespace"] ?? object.metadata.namespace}/${subject["name"]}`;
      access.set(key, [...(access.get(key) ?? []), each, ...roles]);
    }
  }
  return access;
}

function turnOf({ metadata: { annotations = {} } }: Pick<KubeObject, "metadata">): Turn {
  const wave = Number(annotations[WAVE] ?? 0);
  const hook = (annotations[HOOK] ?? "").split(",").find((each) => PHASES.has(each.trim()));
  return { phase: PHASES.get(hook?.trim() ?? "") ?? 0, wave: Number.isInteger(wave) ? wave : 0 };
}

const compare = (a: Turn, b: Turn): number => a.phase - b.phase || a.wave - b.wave;

function textOf({ phase, wave }: Turn): string {
  const [hook] = [...PHASES].find(([, place]) => place === phase) ?? [];
  return hook === undefined ? `sync wave ${wave}` : `wave ${wave} of the phase ${hook}`;
}

const describe = ({ kind, metadata: { namespace, name } }: KubeObject): string => describeObject(kind, namespace, name);
