/** A Secret or ConfigMap comes in, a Trace of it goes out: everything that may refer to it is listed, side by side. */

import type { SecretBinding, StoredBinding } from "../api/binding.ts";
import type { SecretGrant } from "../api/secret-grant.ts";
import { asRecorded } from "../api/status-records.ts";
import type { KubeObject, ObjectRef, Resource } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { CONFIG_MAPS, INGRESSES, SECRET_BINDINGS, SECRETS, SERVICE_ACCOUNTS } from "../apimachinery/resources.ts";
import { attempt } from "../kube/access-error.ts";
import type { Scope } from "../kube/list-watch.ts";
import { foundOr, type Reading } from "./reading.ts";
import { lookAtReferrers } from "./referrers.ts";
import { restarts } from "./restarts.ts";
import { grantsIn } from "./sources.ts";
import { readerOfTemplates, type Tools } from "./tools.ts";
import {
  bindingTraces,
  granteesOf,
  isGatewayCertificate,
  isIngressCertificate,
  pullsWith,
  sourcesAt,
  type Trace,
  type Traced,
  writerTrace,
} from "./trace.ts";

/** Whether a grant speaks of an object, as far as its labels are known. */
export type SpeaksOf = (
  spec: SecretGrant["spec"],
  asked: ObjectRef,
  labels: Readonly<Record<string, string>> | undefined,
) => boolean;

/** Throws Error where there is no such object. */
export async function trace(tools: Tools & { speaksOf: SpeaksOf }, traced: Traced): Promise<Trace> {
  const { kind, namespace, name } = traced;
  const ref: ObjectRef = { resource: kind === "Secret" ? SECRETS : CONFIG_MAPS, namespace, name };
  const unseen: string[] = [];
  /** Notes what can't be seen; nothing is lost of the rest. */
  const seen = <T>(reading: Reading<T[]>): T[] => {
    if (reading.state === "Unreadable") unseen.push(reading.message);
    return foundOr(reading, []);
  };
  const [object, bindings, grants, referrers, accounts, certificates] = await Promise.all([
    tools.reader.get(ref, ({ metadata }) => ({ version: metadata.resourceVersion, labels: metadata.labels ?? {} })),
    everywhere(tools, SECRET_BINDINGS, namespace, concerning(traced)),
    grantsIn(tools, namespace),
    lookAtReferrers(tools, traced),
    kind === "Secret" ? pullers(tools, traced) : undefined,
    kind === "Secret" ? certificatesOf(tools, traced) : [],
  ]);
  if (object.state === "NotFound") throw new Error(`there is no ${kind} ${namespace}/${name}`);
  const found = bindings.flatMap(seen);
  const readTemplate = await readerOfTemplates(tools, found);
  const granting = seen(grants).filter(({ spec }) =>
    tools.speaksOf(spec, ref, object.state === "Found" ? object.it.labels : undefined),
  );
  return {
    object: {
      ...traced,
      state: object.state,
      ...(object.state === "Found" ? { resourceVersion: object.it.version } : { message: object.message }),
    },
    bindings: found.flatMap((binding) => bindingTraces(binding, traced, readTemplate)),
    writers: found.flatMap((binding) => writerTrace(binding, traced) ?? []),
    grants: granting.map(({ name, spec }) => ({ name, from: granteesOf(spec) })),
    workloads: referrers.flatMap(seen).map(({ labels, owners, ...workload }) => ({
      ...workload,
      restarts: found
        .filter((binding) => restarts(binding, traced, { ...workload, labels, owners }, readTemplate))
        .map(({ metadata, spec }) => ({
          binding: `${metadata.namespace}/${metadata.name}`,
          suspended: spec.suspend === true || spec.rollout?.suspend === true,
        })),
    })),
    serviceAccounts: accounts === undefined ? [] : seen(accounts),
    certificates: certificates.flatMap((each) => seen(each)),
    unseen: [...new Set(unseen)],
  };
}

function concerning(traced: Traced): (object: KubeObject) => SecretBinding | undefined {
  return (object) => {
    const binding = asRecorded(object as unknown as StoredBinding);
    const isOf = sourcesAt(binding, traced).length > 0 || writerTrace(binding, traced) !== undefined;
    return isOf ? binding : undefined;
  };
}

/** Of all namespaces; where that is not allowed, of its own, and it is said so. */
async function everywhere<T>(
  { reader }: Tools,
  resource: Resource,
  namespace: string,
  take: (object: KubeObject) => T | undefined,
): Promise<Reading<T[]>[]> {
  const scope: Scope = { resource, form: "whole" };
  const all = await reader.list(scope, take);
  return all.state === "Unreadable" ? [all, await reader.list({ ...scope, namespace }, take)] : [all];
}

function pullers({ reader }: Tools, { namespace, name }: Traced): Promise<Reading<string[]>> {
  return reader.list({ resource: SERVICE_ACCOUNTS, namespace, form: "whole" }, (account) =>
    pullsWith(account, name) ? account.metadata.name : undefined,
  );
}

type Certificates = Trace["certificates"];

async function certificatesOf(tools: Tools, traced: Traced): Promise<Reading<Certificates>[]> {
  const of = (kind: string, isOf: (object: KubeObject) => boolean) => (object: KubeObject) =>
    isOf(object) ? { kind, namespace: object.metadata.namespace ?? "", name: object.metadata.name } : undefined;
  const ingresses = tools.reader.list(
    { resource: INGRESSES, namespace: traced.namespace, form: "whole" },
    of("Ingress", (ingress) => isIngressCertificate(ingress, traced.name)),
  );
  // Not asked for where it is not served: RBAC would say that the user may not, before anybody says that there is none.
  const gateway = await attempt(tools.discovery.byKind("gateway.networking.k8s.io/v1", "Gateway"));
  const gateways: Reading<Certificates>[] =
    gateway instanceof Problem
      ? [{ state: "Unreadable", message: gateway.message }]
      : gateway === undefined
        ? []
        : await everywhere(
            tools,
            gateway,
            traced.namespace,
            of("Gateway", (each) => isGatewayCertificate(each, traced)),
          );
  return [await ingresses, ...gateways];
}
