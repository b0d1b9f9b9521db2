/** Turns the permissions of accounts into ServiceAccounts, Roles and their bindings: one Role for each account and namespace. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import type { RequiredPermission } from "../controllers/binding/required-access.ts";
import { OPEN_ACCOUNT } from "../kube/access-error.ts";
import { resourceText, rulesFor } from "../kube/grant-commands.ts";
import { ALL_NAMESPACES } from "./binding-access.ts";

/** A ServiceAccount with all of its permissions. */
export interface AccountAccess {
  readonly namespace: string;
  readonly name: string;
  /** An installation of Inlay creates its own accounts. */
  readonly isInstalled: boolean;
  readonly permissions: readonly RequiredPermission[];
}

export interface RoleRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  /** Absent: all names. */
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** A rule, and the parts of bindings that need it. */
export interface ExplainedRule {
  readonly rule: RoleRule;
  readonly why: readonly string[];
}

export interface PlannedRole {
  readonly name: string;
  /** Undefined for a ClusterRole. */
  readonly namespace: string | undefined;
  readonly account: Pick<AccountAccess, "namespace" | "name">;
  readonly rules: readonly ExplainedRule[];
}

const RBAC = "rbac.authorization.k8s.io";

/** `prefix` begins the names of all Roles. */
export function rolesOf(accounts: readonly AccountAccess[], prefix: string): PlannedRole[] {
  return accounts.flatMap((account) => {
    const here = account.permissions.map(inCluster);
    return [...Map.groupBy(here, ({ ref }) => ref.namespace)].toSorted(byNamespace).map(([namespace, permissions]) => {
      const isOwn = namespace === account.namespace && account.name === OPEN_ACCOUNT;
      // A colon is in no name of an account or namespace, so the names of Roles differ.
      const name = isOwn ? prefix : `${prefix}:${account.namespace}:${account.name}`;
      return { name, namespace, account, rules: explainedRules(permissions) };
    });
  });
}

function inCluster({ ref, ...rest }: RequiredPermission): RequiredPermission {
  const { namespace, ...there } = ref;
  return namespace === ALL_NAMESPACES ? { ...rest, ref: there } : { ...rest, ref };
}

const byNamespace = ([a]: [string | undefined, unknown], [b]: [string | undefined, unknown]) =>
  (a ?? "") < (b ?? "") ? -1 : 1;

/** One RBAC rule can't hold resources of several groups without allowing all combinations. */
function explainedRules(permissions: readonly RequiredPermission[]): ExplainedRule[] {
  return rulesFor(permissions).flatMap(({ verbs, resources, names }) => {
    const byGroup = Map.groupBy(resources.map(partsOf), ({ group }) => group);
    return [...byGroup].map(([group, parts]) => {
      const plurals = parts.map(({ plural }) => plural);
      const isBehind = ({ ref, verbs: needed }: RequiredPermission) =>
        parts.some(({ text }) => text === resourceText(ref.resource)) &&
        needed.some((verb) => verbs.includes(verb)) &&
        (names.length === 0 || ref.name === undefined || names.includes(ref.name));
      const only = names.length === 0 ? {} : { resourceNames: names };
      const why = [...new Set(permissions.filter(isBehind).map((each) => each.why))];
      return { rule: { apiGroups: [group], resources: plurals, ...only, verbs }, why };
    });
  });
}

/** `harborclusters.goharbor.io`. A plural has no dot. */
function partsOf(text: string): { text: string; plural: string; group: string } {
  const [plural = "", ...group] = text.split(".");
  return { text, plural, group: group.join(".") };
}

/** The manifests of accounts, each before its Roles. */
export function manifestsOf(
  accounts: readonly AccountAccess[],
  roles: readonly PlannedRole[],
): { object: JsonObject; why: ReadonlyMap<number, readonly string[]> }[] {
  const none = new Map<number, readonly string[]>();
  return accounts.flatMap((account) => {
    const { namespace, name, isInstalled } = account;
    const created = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } };
    const ofAccount = roles.filter((role) => role.account === account);
    return [
      ...(isInstalled ? [] : [{ object: created as JsonObject, why: none }]),
      ...ofAccount.flatMap((role) => [
        { object: roleOf(role), why: new Map(role.rules.map(({ why }, at) => [at, why])) },
        { object: roleBindingOf(role), why: none },
      ]),
    ];
  });
}

const kindIn = (namespace: string | undefined) => (namespace === undefined ? "ClusterRole" : "Role");
const metadataOf = ({ name, namespace }: PlannedRole) => ({ name, ...(namespace !== undefined && { namespace }) });

function roleOf(role: PlannedRole): JsonObject {
  const rules = role.rules.map(({ rule }) => ({ ...rule }));
  const object = { apiVersion: `${RBAC}/v1`, kind: kindIn(role.namespace), metadata: metadataOf(role), rules };
  return object as unknown as JsonObject;
}

function roleBindingOf(role: PlannedRole): JsonObject {
  const { name, namespace, account } = role;
  const kind = kindIn(namespace);
  return {
    apiVersion: `${RBAC}/v1`,
    kind: `${kind}Binding`,
    metadata: metadataOf(role),
    roleRef: { apiGroup: RBAC, kind, name },
    subjects: [{ kind: "ServiceAccount", name: account.name, namespace: account.namespace }],
  };
}
