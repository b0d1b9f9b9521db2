/** The permissions that manifests grant to accounts, verb by verb. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";

interface Rule {
  apiGroups: string[];
  resources: string[];
  resourceNames?: string[];
  verbs: string[];
}

export interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string };
  rules?: Rule[];
  roleRef?: { kind: string; name: string };
  subjects?: { name: string; namespace?: string }[];
}

export interface Grant {
  /** As `namespace/name`. */
  account: string;
  /** Undefined for all namespaces. */
  namespace: string | undefined;
  verb: string;
  resource: string;
  /** Undefined for all names. */
  name: string | undefined;
}

export const root = join(import.meta.dirname, "..", "..", "..");

export const objectsOf = (text: string): Manifest[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter((object) => object !== null);

export const objectsIn = (glob: string): Manifest[] =>
  globSync(glob, { cwd: root }).flatMap((file) => objectsOf(readFileSync(join(root, file), "utf8")));

/** What the bindings of roles among the manifests grant. */
export function grantsIn(manifests: readonly Manifest[]): Grant[] {
  return manifests.flatMap(({ roleRef, subjects = [], metadata: { namespace } }) =>
    subjects.flatMap((subject) => {
      const role = manifests.find(
        ({ kind, metadata }) =>
          kind === roleRef?.kind &&
          metadata.name === roleRef.name &&
          (kind === "ClusterRole" || metadata.namespace === namespace),
      );
      const account = `${subject.namespace}/${subject.name}`;
      return rightsOf(role?.rules ?? []).map((right) => ({ account, namespace, ...right }));
    }),
  );
}

export function rightsOf(rules: readonly Rule[]): Omit<Grant, "account" | "namespace">[] {
  return rules.flatMap(({ apiGroups, resources, resourceNames, verbs }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((plural) =>
        verbs.flatMap((verb) =>
          (resourceNames ?? [undefined]).map((name) => ({
            verb,
            resource: group === "" ? plural : `${plural}.${group}`,
            name,
          })),
        ),
      ),
    ),
  );
}

/** Whether `wide` allows what `narrow` allows. */
export const covers = (wide: Grant, narrow: Grant): boolean =>
  wide.account === narrow.account &&
  wide.verb === narrow.verb &&
  wide.resource === narrow.resource &&
  (wide.namespace === undefined || wide.namespace === narrow.namespace) &&
  (wide.name === undefined || wide.name === narrow.name);

export const describeGrant = ({ account, namespace = "*", verb, resource, name = "*" }: Grant): string =>
  `${account}: ${verb} ${resource}/${name} in ${namespace}`;
