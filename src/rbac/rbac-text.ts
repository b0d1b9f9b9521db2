/** Prints accounts and their permissions: as YAML with comments that say why, as a List, and as a table. Pure. */
import { Document, isMap, isSeq } from "yaml";
import type { JsonObject } from "../apimachinery/objects.ts";
import { plain } from "../apimachinery/plain.ts";
import { YAML_OPTIONS } from "../apimachinery/yaml-options.ts";
import { layOutWhole, paragraph, section, table } from "../explain/text.ts";
import type { RequiredAccounts } from "./rbac.ts";
import { manifestsOf, type PlannedRole, rolesOf } from "./roles.ts";

/** The most reasons in one comment. */
const MAX_REASONS = 3;

/** The manifests, for `kubectl apply -f -`. */
export function rbacYaml({ accounts, notes }: RequiredAccounts, prefix: string): string[] {
  const documents = manifestsOf(accounts, rolesOf(accounts, prefix)).map(({ object, why }) => commented(object, why));
  return [...notes.map((note) => `# ${plain(note)}`), documents.join("\n---\n")];
}

export const rbacList = ({ accounts }: RequiredAccounts, prefix: string): JsonObject => ({
  apiVersion: "v1",
  kind: "List",
  items: manifestsOf(accounts, rolesOf(accounts, prefix)).map(({ object }) => object),
});

/** Each rule of a Role with its reasons. */
function commented(object: JsonObject, why: ReadonlyMap<number, readonly string[]>): string {
  const document = new Document(object, YAML_OPTIONS);
  const rules = document.get("rules");
  if (isSeq(rules))
    for (const [at, rule] of rules.items.entries())
      if (isMap(rule)) {
        rule.commentBefore = ` ${plain(shortened(why.get(at) ?? []))}`;
        for (const { value } of rule.items) if (isSeq(value)) value.flow = true;
      }
  return document.toString({ ...YAML_OPTIONS, flowCollectionPadding: false }).trimEnd();
}

function shortened(reasons: readonly string[]): string {
  const more = reasons.length - MAX_REASONS;
  return [...reasons.slice(0, MAX_REASONS), ...(more > 0 ? [`${more} more`] : [])].join(", ");
}

export function rbacTable({ accounts, notes }: RequiredAccounts, prefix: string, width: number): string[] {
  const roles = rolesOf(accounts, prefix);
  const parts = accounts.flatMap((account) => {
    const ofAccount = roles.filter((role) => role.account === account);
    const heading = plain(`ServiceAccount ${account.namespace}/${account.name}`);
    return section(heading, table(["IN", "VERBS", "RESOURCE", "NAMES", "WHY"], ofAccount.flatMap(rowsOf)));
  });
  return layOutWhole([...parts, ...section("NOTES", notes.map(paragraph))], width);
}

const rowsOf = ({ namespace, rules }: PlannedRole): string[][] =>
  rules.map(({ rule, why }) => {
    const [group = ""] = rule.apiGroups;
    const resources = rule.resources.map((plural) => (group === "" ? plural : `${plural}.${group}`));
    const where = namespace ?? "all namespaces";
    return [where, rule.verbs.join(", "), resources.join(", "), (rule.resourceNames ?? []).join(", "), shortened(why)];
  });
