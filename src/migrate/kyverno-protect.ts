/** Converts Kyverno rules that deny changes of a Secret or ConfigMap to its protection. Pure. */
import { isGlob } from "../apimachinery/glob.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { messageIn, type Protection, protect } from "./kyverno-draft.ts";
import type { Results } from "./kyverno-fields.ts";
import {
  excludedBy,
  isAboutData,
  isExact,
  isExcluded,
  KEEP_RULE,
  matchesOf,
  namespacesOf,
  operationsOf,
} from "./kyverno-match.ts";
import type { Input } from "./migration.ts";
import { compact } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

export function addProtection(input: Input, rule: Tracked, { drafts }: Results): void {
  const validate = rule.field("validate");
  const matches = matchesOf(rule.field("match")).map((match) => ({
    ...match,
    namespaces: namespacesOf(match, input.namespace),
  }));
  const isKnown = (match: (typeof matches)[number]) =>
    isAboutData(match) && match.namespaces.length > 0 && match.namespaces.every(isExact);
  if (!validate.field("deny").exists || !matches.every(isKnown)) {
    rule.refuse(KEEP_RULE);
    return;
  }
  rule.ignore("name");
  const message = messageIn(validate);
  validate.ignore("message", "allowExistingViolations");
  validate.field("deny").entries();
  const conditions = [rule.field("preconditions"), validate.field("deny", "conditions")];
  for (const match of matches) {
    const operations = operationsOf(match, ...conditions);
    if (!["UPDATE", "DELETE"].every((each) => operations.includes(each)))
      match.block.lose("protect denies both changes and the deletion; this rule denies only one of them");
  }
  const actions = [validate.field("failureAction"), input.root.field("spec", "validationFailureAction")];
  const action = actions.map((each) => each.text()).find((each) => each !== undefined);
  if (action?.toLowerCase() !== "enforce") {
    rule.lose("this rule only reports; protect would deny. Add protect to a binding of this Secret if you want that");
    return;
  }
  const excluded = excludedBy(rule);
  const except = excluded.map(({ block }) => exceptedBy(block));
  const protection = {
    writers: except.flatMap((each) => each.writers),
    roles: except.flatMap((each) => each.roles),
    message,
  };
  // Who may write does not select the Secrets.
  const fields = excluded.flatMap(({ block }) => block.fields("clusterRoles", "subjects"));
  const concerned = matches.flatMap(({ kinds, names, namespaces }) =>
    kinds.flatMap((kind) =>
      namespaces.flatMap((namespace) =>
        names
          .filter((name) => !isExcluded(rule, kind, namespace, name))
          .map((name) => drafts.of(kind, namespace, name, input)),
      ),
    ),
  );
  if (!drafts.isUnderstood(input, rule, fields)) drafts.selectNothing(input, concerned, "Protects nothing.");
  else for (const draft of concerned) protect(draft, protection);
}

/** Cluster admins may always write. */
function exceptedBy(block: Tracked): Pick<Protection, "writers" | "roles"> {
  if (!block.field("clusterRoles").exists) return { writers: writersOf(block), roles: [] };
  const isBoth = block.field("subjects").exists;
  if (isBoth)
    block.field("subjects").refuse("these subjects are excepted only with the ClusterRole; write writers by hand");
  const roles = block
    .field("clusterRoles")
    .list()
    .flatMap((each) => {
      const name = each.text() ?? "";
      if (!isGlob(name)) return name === "cluster-admin" || isBoth ? [] : [name];
      each.lose("only a ClusterRole with an exact name gets the verb of the writers; write each of them");
      return [];
    });
  return { writers: [], roles };
}

function writersOf(block: Tracked): JsonObject[] {
  return block
    .field("subjects")
    .list()
    .flatMap((subject) => {
      const [kind = "", name = "", namespace] = subject.textsOf("kind", "name", "namespace");
      subject.ignore("apiGroup");
      if (!isGlob(name)) return writerOf(kind, name, namespace);
      subject.lose("a writer has an exact name; write each of them");
      return [];
    });
}

const ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;

/** A user, a group or an account as a writer. Kyverno's own accounts are omitted, because Kyverno no longer writes the Secret. */
export function writerOf(kind: string, name: string, namespace?: string): JsonObject[] {
  const [, inName, ofName] = ACCOUNT.exec(kind === "User" ? name : "") ?? [];
  const writer =
    inName !== undefined && ofName !== undefined
      ? { kind: "ServiceAccount", name: ofName, namespace: inName }
      : compact({ kind, name, namespace });
  const isKyverno =
    writer["kind"] === "ServiceAccount" && writer["namespace"] === "kyverno" && /^kyverno/.test(String(writer["name"]));
  return isKyverno ? [] : [writer];
}
