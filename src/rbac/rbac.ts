/** Computes the least permissions for the bindings in files, and for the bindings that compositions create for claims. */

import type { SecretBinding } from "../api/binding.ts";
import type { BindingComposition } from "../api/composition.ts";
import type { Installation } from "../api/installation.ts";
import { getOrInsert } from "../apimachinery/maps.ts";
import { isSameKind, type KubeObject, type Resource } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { BINDING_COMPOSITIONS, SECRET_BINDINGS, SERVICE_ACCOUNTS } from "../apimachinery/resources.ts";
import { compileComposition } from "../composition/compile.ts";
import type { RequiredPermission } from "../controllers/binding/required-access.ts";
import { claimVerbs } from "../controllers/composition/claim-writer.ts";
import { attempt, OPEN_ACCOUNT, OWN_ACCOUNT, READ_VERBS, STREAM_VERBS } from "../kube/access-error.ts";
import { bindingIn } from "../render/analysis.ts";
import { type BindingToRender, composeBindings, isBinding } from "../render/claims.ts";
import {
  distinctMistakes,
  type Mistake,
  type ObjectDocument,
  readDocuments,
  type TextFile,
} from "../render/documents.ts";
import { fileCluster } from "../render/file-cluster.ts";
import { FROM_CLUSTER, type InputObject, type Inputs, inputsOf, mistakeAt } from "../render/inputs.ts";
import { isCrd } from "../render/kinds.ts";
import { ownResource } from "../render/own-kinds.ts";
import { statusesOf } from "../sources/provider-class.ts";
import { connectionKindOf, parseSources } from "../sources/registry.ts";
import { bindingAccess } from "./binding-access.ts";
import { fileKinds, type KindSearch, kindOf, withSourceKinds } from "./kinds.ts";
import type { AccountAccess } from "./roles.ts";

/** Throws Problem. `namespaces` are those of the claims; undefined for claims that are cluster-scoped. */
async function claimAccess(
  { metadata, spec }: BindingComposition,
  namespaces: readonly (string | undefined)[],
  kinds: KindSearch,
): Promise<RequiredPermission[]> {
  const resource = await kindOf(kinds, spec.for.apiVersion, spec.for.kind);
  const { writes } = compileComposition(spec, resource);
  const isStatus = (path: (typeof writes)[number]) => resource.hasStatus && String(path).startsWith("status");
  const why = `claims of BindingComposition ${metadata.name}`;
  const on = (kind: Resource, verbs: readonly string[]) =>
    namespaces.map((namespace) => ({ ref: { resource: kind, namespace }, verbs, why }));
  const verbs = claimVerbs(resource);
  const reading = verbs.filter((verb) => verb === "get");
  const status = { ...resource, plural: `${resource.plural}/status` };
  return [
    ...on(resource, STREAM_VERBS),
    ...(writes.every(isStatus) ? [] : on(resource, verbs)),
    ...(writes.some(isStatus) ? [...on(resource, reading), ...on(status, ["patch"])] : []),
  ];
}

/** As its author, the account also needs what policies/authors.yaml asks. Sources that need a grant are permitted by the grant. */
async function authorAccess(
  composition: string,
  binding: SecretBinding,
  kinds: KindSearch,
): Promise<RequiredPermission[]> {
  const { namespace } = binding.metadata;
  const why = `author of the bindings of BindingComposition ${composition}`;
  const account = { resource: SERVICE_ACCOUNTS, namespace, name: binding.spec.serviceAccountName };
  const discovery = withSourceKinds(kinds, binding);
  const reads = parseSources(binding).map(async (source): Promise<RequiredPermission[]> => {
    const { data, store, providerClass, locate } = source;
    const connection = store?.connection;
    if (data?.needsGrant || connection?.needsGrant) return [];
    if (connection !== undefined) return [{ ref: connection.ref, verbs: ["use"], why }];
    if (providerClass !== undefined)
      return [{ ref: { resource: await statusesOf(discovery), namespace }, verbs: ["list"], why }];
    const ref = await locate?.(discovery);
    return ref === undefined ? [] : [{ ref, verbs: ["get"], why }];
  });
  return [
    { ref: { resource: SECRET_BINDINGS, namespace }, verbs: ["create", "update", "delete"], why },
    { ref: account, verbs: ["impersonate"], why },
    ...(await Promise.all(reads)).flat(),
  ];
}

/** The account for BindingCompositions that the manifests create. */
const COMPOSITIONS_ACCOUNT = "inlay-compositions";

/** Collects the permissions of accounts, and what the controller needs to impersonate them. */
class AccountList {
  readonly #ownNamespace: string;
  readonly #accounts = new Map<string, AccountAccess & { permissions: RequiredPermission[] }>();

  /** In the namespace of the controller are the accounts of the installation. */
  constructor(ownNamespace: string) {
    this.#ownNamespace = ownNamespace;
  }

  get isEmpty(): boolean {
    return this.#accounts.size === 0;
  }

  /** `isRead`: the controller also watches the account. */
  add(namespace: string, name: string, permissions: readonly RequiredPermission[], isRead = true): void {
    const isInstalled = namespace === this.#ownNamespace && [OWN_ACCOUNT, COMPOSITIONS_ACCOUNT].includes(name);
    const isNew = !this.#accounts.has(`${namespace}/${name}`);
    const account = this.#of(namespace, name, isInstalled);
    account.permissions.push(...permissions);
    if (!isNew || isInstalled || name === OPEN_ACCOUNT) return;
    const ref = { resource: SERVICE_ACCOUNTS, namespace, name };
    const verbs = ["impersonate", ...(isRead ? READ_VERBS : [])];
    const why = `acts as ServiceAccount ${namespace}/${name}`;
    this.#of(this.#ownNamespace, OWN_ACCOUNT, true).permissions.push({ ref, verbs, why });
  }

  /** Sorted by namespace and name. */
  all(): AccountAccess[] {
    return [...this.#accounts].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, account]) => account);
  }

  #of(namespace: string, name: string, isInstalled: boolean) {
    const newOne = () => ({ namespace, name, isInstalled, permissions: [] });
    return getOrInsert(this.#accounts, `${namespace}/${name}`, newOne);
  }
}

export interface RbacOptions {
  /** The default namespace of objects. */
  readonly namespace: string;
  readonly installation: Installation;
  readonly crds: readonly TextFile[];
  /** Reads kinds and objects from a cluster. */
  readonly cluster?: {
    readonly kinds: KindSearch;
    objectsFor(documents: readonly ObjectDocument[], namespace: string): Promise<ObjectDocument[]>;
  };
}

export interface RequiredAccounts {
  readonly accounts: readonly AccountAccess[];
  readonly notes: readonly string[];
  readonly mistakes: readonly Mistake[];
}

/** Throws Error if the files contain nothing that needs permissions. */
export async function requiredAccounts(files: readonly TextFile[], options: RbacOptions): Promise<RequiredAccounts> {
  const { namespace, installation, cluster: live } = options;
  const { documents, mistakes: unreadable } = readDocuments(files);
  const crds = readDocuments(options.crds);
  const more = (await live?.objectsFor(documents, namespace)) ?? [];
  const known = [...documents, ...crds.documents.filter(({ object }) => isCrd(object)), ...more];
  const inputs = inputsOf(known, namespace, { ownOnly: true });
  const kinds = live?.kinds ?? fileKinds(inputs.kinds);
  const cluster = fileCluster(inputs);
  const own = inputs.objects.filter(isBinding);
  const composed = composeBindings(inputs, installation);
  const bindings = [...own.map(bindingIn), ...composed.bindings].filter(({ isBroken }) => !isBroken);
  const ofClaims = new Set(composed.claimMistakes);
  const wrong = composed.mistakes.filter((each) => !ofClaims.has(each));
  const mistakes = [...unreadable, ...crds.mistakes, ...inputs.mistakes, ...wrong];
  const accounts = new AccountList(installation.ownNamespace);
  for (const each of bindings) {
    const { binding, mistakeAt: at } = each;
    const { permissions, problems } = await bindingAccess(binding, { kinds, cluster, inputs, installation });
    accounts.add(binding.metadata.namespace ?? "", binding.spec.serviceAccountName, permissions);
    mistakes.push(
      ...problems.map(({ place, problem }) =>
        at(problem.reason, problem.at[0]?.startsWith(place) ? problem : problem.within(place)),
      ),
    );
  }
  const compositions = inputs.objects.filter(
    ({ object, isBroken }) => !isBroken && ownResource(object) === BINDING_COMPOSITIONS,
  );
  for (const each of compositions) mistakes.push(...(await addComposition(each, bindings, inputs, kinds, accounts)));
  for (const { object, document } of inputs.objects)
    if (document.file !== FROM_CLUSTER) addConnection(object, accounts);
  if (accounts.isEmpty && compositions.length === 0 && mistakes.length === 0)
    throw new Error("the files contain no SecretBinding, BindingComposition or VaultConnection; add one with -f");
  return {
    accounts: accounts.all(),
    notes: [...composed.notes, ...composed.claimMistakes.map(noteOf)],
    mistakes: distinctMistakes(mistakes),
  };
}

/** A claim that gets no binding needs no permissions. */
const noteOf = ({ file, line, message }: Mistake) => `${file}:${line}: ${message}`;

/** Returns the mistakes of the composition. */
async function addComposition(
  { object, document }: InputObject,
  bindings: readonly BindingToRender[],
  { objects }: Inputs,
  kinds: KindSearch,
  accounts: AccountList,
): Promise<Mistake[]> {
  const composition = object as unknown as BindingComposition;
  const { namespace, name } = composition.spec.serviceAccount;
  const made = bindings.filter(({ from }) => from?.composition === composition.metadata.name);
  if (made.length === 0) return [];
  const claims = objects.filter((each) => isSameKind(each.object, composition.spec.for));
  const places = new Set(claims.map((each) => each.object.metadata.namespace));
  const needed = await attempt(
    Promise.all([
      claimAccess(composition, [...places], kinds),
      ...made.map(({ binding }) => authorAccess(composition.metadata.name, binding, kinds)),
    ]),
  );
  if (needed instanceof Problem) return [mistakeAt(document, needed.reason, needed, ["spec", "for"], [])];
  // The controller reads no account of a composition.
  accounts.add(namespace, name, needed.flat(), false);
  return [];
}

/** A connection reads its certificates and credentials as its account. */
function addConnection(object: KubeObject, accounts: AccountList): void {
  const needed = connectionKindOf(object)?.access(object);
  if (needed === undefined) return;
  const { account, permissions } = needed;
  const why = `${object.kind} ${object.metadata.name}`;
  accounts.add(
    account.namespace ?? "",
    account.name,
    permissions.map((each) => ({ ...each, why })),
  );
}
