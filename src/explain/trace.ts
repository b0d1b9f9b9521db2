/** Traces a Secret or ConfigMap: lists all objects that may refer to it, and to copies that bindings write from it. */
import type { SecretBinding, StoredBinding } from "../api/binding.ts";
import { asRecorded } from "../api/status-records.ts";
import { apiVersionOf, type KubeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { CONFIG_MAPS, INGRESSES, SECRET_BINDINGS, SECRETS, SERVICE_ACCOUNTS } from "../apimachinery/resources.ts";
import { coversObject } from "../sources/grant-rules.ts";
import { connectionKinds } from "../sources/registry.ts";
import { consumedCopies, copiesOf } from "./copies.ts";
import { foundOr, type Reading, seenOf } from "./reading.ts";
import { findReferrers, findReferrersOfAll } from "./referrers.ts";
import { restarterOf } from "./restarts.ts";
import { grantsIn } from "./sources.ts";
import { listIfServed, readerOfTemplates, type Tools } from "./tools.ts";
import {
  bindingTraces,
  connectionUses,
  granteesOf,
  isGatewayCertificate,
  isIngressCertificate,
  pullsWith,
  sourcesAt,
  type Trace,
  type Traced,
  writerTrace,
} from "./trace-result.ts";
import { workloadTrace } from "./workload-trace.ts";

/** An object that does not exist is traced too: its users wait for it. Throws Error if it has none. */
export async function trace(tools: Tools, traced: Traced): Promise<Trace> {
  const { kind, namespace, name } = traced;
  const ref: ObjectRef = { resource: kind === "Secret" ? SECRETS : CONFIG_MAPS, namespace, name };
  const unreadable: string[] = [];
  /** Records what can't be read; the other results are still shown. */
  const seen = <T>(reading: Reading<T[]>): T[] => {
    if (reading.state === "Unreadable") unreadable.push(reading.message);
    return foundOr(reading, []);
  };
  const [object, bindings, grants, referrers, accounts, certificates, connections] = await Promise.all([
    tools.reader.get(ref, ({ metadata }) => ({ version: metadata.resourceVersion, labels: metadata.labels ?? {} })),
    everywhere(namespace, (within) =>
      tools.reader.list({ resource: SECRET_BINDINGS, namespace: within, form: "whole" }, concerning(traced)),
    ),
    grantsIn(tools, namespace),
    findReferrers(tools, traced),
    kind === "Secret" ? pullers(tools, traced) : undefined,
    kind === "Secret" ? certificatesOf(tools, traced) : [],
    connectionsOf(tools, traced),
  ]);
  const found = bindings.flatMap(seen);
  const readTemplate = await readerOfTemplates(found);
  const objectLabels = object.state === "Found" ? object.it.labels : undefined;
  const copies = await copiesOf(found);
  const consumed = consumedCopies(copies, traced);
  const objects = [...consumed.values()].map(([{ object }]) => object);
  const workloads = [...referrers, ...(await findReferrersOfAll(tools, objects))].flatMap(seen);
  const restarters = found.map((binding) => ({
    binding,
    restarts: restarterOf(binding, traced, copies, readTemplate),
  }));
  const granting = seen(grants).filter(({ spec }) => coversObject(spec, ref, objectLabels));
  const result: Trace = {
    object: { ...traced, ...seenOf(object), ...(object.state === "Found" && { resourceVersion: object.it.version }) },
    bindings: found.flatMap((binding) => bindingTraces(binding, traced, readTemplate)),
    writers: found.flatMap((binding) => writerTrace(binding, traced) ?? []),
    grants: granting.map(({ name, spec }) => ({ name, from: granteesOf(spec) })),
    workloads: workloads.flatMap((each) => workloadTrace(each, traced, consumed, restarters) ?? []),
    serviceAccounts: accounts === undefined ? [] : seen(accounts),
    certificates: certificates.flatMap((each) => seen(each)),
    connections: connections.flatMap((each) => seen(each)),
    unreadable: [...new Set(unreadable)],
  };
  if (object.state === "NotFound" && !isUsed(result))
    throw new Error(
      `there is no ${kind} ${namespace}/${name}, and nothing refers to it; list all with: kubectl get ${kind.toLowerCase()}s -A`,
    );
  return result;
}

const isUsed = ({ object: _, unreadable: __, ...uses }: Trace) => Object.values(uses).some(({ length }) => length > 0);

function concerning(traced: Traced): (object: KubeObject) => SecretBinding | undefined {
  return (object) => {
    const binding = asRecorded(object as unknown as StoredBinding);
    const isOf = sourcesAt(binding, traced).length > 0 || writerTrace(binding, traced) !== undefined;
    return isOf ? binding : undefined;
  };
}

/** In all namespaces. If that is not allowed, in the object's namespace, with a message. */
async function everywhere<T>(
  namespace: string,
  list: (namespace: string | undefined) => Promise<Reading<T[]>>,
): Promise<Reading<T[]>[]> {
  const all = await list(undefined);
  return all.state === "Unreadable" ? [all, await list(namespace)] : [all];
}

function pullers({ reader }: Tools, { namespace, name }: Traced): Promise<Reading<string[]>> {
  return reader.list({ resource: SERVICE_ACCOUNTS, namespace, form: "whole" }, (account) =>
    pullsWith(account, name) ? account.metadata.name : undefined,
  );
}

function connectionsOf(tools: Tools, traced: Traced): Promise<Reading<Trace["connections"]>[]> {
  return Promise.all(
    connectionKinds().map(({ resource, namedBy }) =>
      listIfServed(tools, { apiVersion: apiVersionOf(resource), kind: resource.kind }, traced.namespace, (object) => {
        const uses = connectionUses(namedBy(object), traced);
        return uses.length === 0 ? undefined : { kind: resource.kind, name: object.metadata.name, uses };
      }),
    ),
  );
}

async function certificatesOf(tools: Tools, traced: Traced): Promise<Reading<Trace["certificates"]>[]> {
  const of = (kind: string, isOf: (object: KubeObject) => boolean) => (object: KubeObject) =>
    isOf(object) ? { kind, namespace: object.metadata.namespace ?? "", name: object.metadata.name } : undefined;
  const ingresses = tools.reader.list(
    { resource: INGRESSES, namespace: traced.namespace, form: "whole" },
    of("Ingress", (ingress) => isIngressCertificate(ingress, traced.name)),
  );
  // Not requested unless it is served: the API server would answer Forbidden before NotFound.
  const gateway = { apiVersion: "gateway.networking.k8s.io/v1", kind: "Gateway" };
  const isOfGateway = (each: KubeObject) => isGatewayCertificate(each, traced);
  const gateways = await everywhere(traced.namespace, (namespace) =>
    listIfServed(tools, gateway, namespace, of(gateway.kind, isOfGateway)),
  );
  return [await ingresses, ...gateways];
}
