/**
 * Writes the Lua files of this folder into the ConfigMap patch argocd-cm.yaml. `npm run generate` runs it. A test fails when the patch is
 * not up to date.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Document, type Pair, Scalar, visit } from "yaml";

const KINDS = ["SecretBinding", "SecretGrant", "BindingComposition", "VaultConnection"] as const;
/** The actions of each kind. discovery.lua says when they are available. */
export const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  SecretBinding: ["sync-now", "suspend", "resume"],
  BindingComposition: ["sync-now", "suspend", "resume"],
  VaultConnection: ["sync-now"],
};
export const PATCH = join(import.meta.dirname, "argocd-cm.yaml");
const HEADER = ` Generated from the Lua files of this folder by \`npm run generate\`. Do not edit.`;

export const luaOf = (file: string): string => readFileSync(join(import.meta.dirname, file), "utf8");

/** The text of argocd-cm.yaml. */
export function argocdPatch(): string {
  const health = KINDS.map((kind) => [`resource.customizations.health.inlay.dev_${kind}`, luaOf("health.lua")]);
  const actions = Object.entries(ACTIONS).map(([kind, names]) => {
    const definitions = names.map((name) => ({ name, "action.lua": luaOf(`actions/${name}.lua`) }));
    const all = { "discovery.lua": luaOf("actions/discovery.lua"), definitions };
    return [`resource.customizations.actions.inlay.dev_${kind}`, textOf(all)];
  });
  const metadata = { name: "argocd-cm", namespace: "argocd", labels: { "app.kubernetes.io/part-of": "argocd" } };
  const data = Object.fromEntries([...health, ...actions]);
  return textOf({ apiVersion: "v1", kind: "ConfigMap", metadata, data }, HEADER);
}

/** YAML with scripts as blocks. */
function textOf(value: unknown, comment?: string): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  if (comment !== undefined) document.commentBefore = comment;
  const asBlock = (_: unknown, pair: Pair) => {
    const scalar = pair.value;
    if (scalar instanceof Scalar && String(scalar.value).includes("\n")) scalar.type = Scalar.BLOCK_LITERAL;
  };
  visit(document, { Pair: asBlock });
  return document.toString({ lineWidth: 0 });
}

if (import.meta.main) writeFileSync(PATCH, argocdPatch());
