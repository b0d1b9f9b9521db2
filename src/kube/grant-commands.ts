/** Prints the commands that grant permissions to an account: one Role for each set of verbs. Pure. */
import { createHash } from "node:crypto";
import { getOrInsert } from "../apimachinery/maps.ts";
import { plainWord, type Resource } from "../apimachinery/objects.ts";
import { homeOf, type Identity } from "./identity.ts";

/** An object, or without a name all objects of the kind there, and what an account does with it. */
export interface Permission {
  ref: { resource: Pick<Resource, "group" | "version" | "plural">; namespace?: string | undefined; name?: string };
  verbs: readonly string[];
}

/** One rule of RBAC. All names if there are none. */
interface Rule {
  /** Undefined for all namespaces and cluster-scoped kinds. */
  namespace: string | undefined;
  verbs: readonly string[];
  resources: readonly string[];
  names: readonly string[];
}

const VERBS = ["get", "list", "watch", "patch", "create", "delete"];
/** The most names in one command, so that it fits into a status and a line of a shell. */
const MAX_NAMES = 50;
/** What the name of a Role says about its verbs. */
const USES: Record<string, string> = {
  "get,list,watch": "reads",
  "get,list,watch,patch": "writes",
  "get,list,watch,patch,delete": "owns",
  create: "creates",
};

/**
 * The commands for exactly these permissions, one for each Role. A name contains a digest of the rule, so that a Role of that name
 * always has that rule: if it exists already, the rest of the commands still works.
 */
export function grantCommands(identity: Identity, permissions: readonly Permission[]): string[] {
  const [, , home, account] = identity.split(":");
  return rulesFor(permissions).map((rule) => {
    const { namespace, verbs, resources, names } = rule;
    const [role, scope] = namespace === undefined ? ["clusterrole", ""] : ["role", ` -n ${shellWord(namespace)}`];
    const granted = JSON.stringify([identity, verbs, resources, names]);
    const digest = createHash("sha256").update(granted).digest("hex").slice(0, 6);
    const roleName = `inlay-${USES[verbs.join()] ?? "uses"}-${digest}`;
    const only = names.map((name) => ` --resource-name=${shellWord(name)}`).join("");
    const what = `--verb=${verbs.join()} --resource=${resources.join()}${only}`;
    return [
      `kubectl create ${role} ${roleName}${scope} ${what}`,
      `kubectl create ${role}binding ${roleName}${scope} --${role}=${roleName} --serviceaccount=${home}:${account}`,
    ].join("; ");
  });
}

/** For messages, such as `get, list, watch on secrets/bucket`. The namespace is named unless it is the account's own. */
export function inWords(identity: Identity, permissions: readonly Permission[]): string[] {
  return rulesFor(permissions).map(({ namespace, verbs, resources, names }) => {
    const what = names.length === 0 ? resources.join(", ") : `${resources[0]}/${names.map(plainWord).join(", ")}`;
    const where =
      namespace === undefined || namespace === homeOf(identity) ? "" : ` in namespace ${plainWord(namespace)}`;
    return `${verbs.join(", ")} on ${what}${where}`;
  });
}

/** `harborclusters.goharbor.io`, as kubectl names a kind, or `harborclusters.goharbor.io/status`. */
export function resourceText({ group, plural }: Pick<Resource, "group" | "plural">): string {
  const [kind = "", ...subresource] = plural.split("/");
  return [group === "" ? kind : `${kind}.${group}`, ...subresource].join("/");
}

/** RBAC can't restrict `create` to names, so it gets a rule of its own. A subresource is created below a name. */
export const isOnAll = (verb: string, plural: string) => verb === "create" && !plural.includes("/");

/** As few rules as possible that allow no more than that. */
export function rulesFor(permissions: readonly Permission[]): Rule[] {
  const verbsOf = new Map<string, { rule: Omit<Rule, "verbs">; verbs: Set<string> }>();
  const keyOf = ({ namespace, resources, names }: Omit<Rule, "verbs">) => JSON.stringify([namespace, resources, names]);
  for (const { ref, verbs } of permissions)
    for (const verb of verbs) {
      const { resource, namespace, name } = ref;
      const names = name === undefined || isOnAll(verb, resource.plural) ? [] : [name];
      const rule = { namespace, resources: [resourceText(resource)], names };
      getOrInsert(verbsOf, keyOf(rule), () => ({ rule, verbs: new Set<string>() })).verbs.add(verb);
    }
  const single = [...verbsOf.values()].flatMap(({ rule, verbs }): Rule[] => {
    const onAll = rule.names.length === 0 ? undefined : verbsOf.get(keyOf({ ...rule, names: [] }))?.verbs;
    const own = inOrder([...verbs].filter((verb) => !onAll?.has(verb)));
    return own.length === 0 ? [] : [{ ...rule, verbs: own }];
  });
  const names = merged(single, ({ names, ...rest }) => [names.length > 0, rest], "names");
  const short = names.flatMap((rule) => chunks(rule.names).map((names) => ({ ...rule, names })));
  return merged(short, ({ resources, ...rest }) => [rest.names.length > 0 ? resources : [], rest], "resources");
}

/** No names stay one list: they mean all. */
const chunks = (names: readonly string[]) =>
  Array.from({ length: Math.max(1, Math.ceil(names.length / MAX_NAMES)) }, (_, at) =>
    names.slice(at * MAX_NAMES, (at + 1) * MAX_NAMES),
  );

/** Merges the rules that differ in one list only. */
function merged(rules: readonly Rule[], alike: (rule: Rule) => unknown, list: "names" | "resources"): Rule[] {
  const groups = Map.groupBy(rules, (rule) => JSON.stringify(alike(rule)));
  return [...groups.values()].map((group) => ({
    ...(group[0] as Rule),
    [list]: [...new Set(group.flatMap((each) => each[list]))],
  }));
}

/** The known verbs first, in their usual order. */
const inOrder = (verbs: readonly string[]) => [
  ...VERBS.filter((verb) => verbs.includes(verb)),
  ...verbs.filter((verb) => !VERBS.includes(verb)),
];

/** Text as one word of a command. */
export const shellWord = (text: string) => (/^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
