/** Proposes a SecretBinding for a live object. Asks for what the flags leave out, if there is a terminal. */
import { plain } from "../apimachinery/plain.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SECRETS } from "../apimachinery/resources.ts";
import { ClusterView, type InitTools } from "./cluster-view.ts";
import { textPaths } from "./paths.ts";
import { type Chosen, type Proposal, proposalOf } from "./proposal.ts";
import { type FieldWish, type Flags, missingFlags, wishesOf } from "./wishes.ts";

/** Lets the user choose one of some names. With `isOpen`, other texts are valid, too. */
export type Ask = (question: string, names: readonly string[], isOpen?: boolean) => Promise<string>;

const PRINT = "print the binding";
const MORE = "add another field";

/** Without `ask`, flags must say everything. Throws Problem. */
export async function init(tools: InitTools, flags: Flags, namespace: string, ask: Ask | undefined): Promise<Proposal> {
  const wishes = wishesOf(flags);
  const missing = missingFlags(wishes);
  if (ask === undefined && missing.length > 0)
    throw new Problem("InvalidBinding", `no terminal to ask on, so these flags are missing: ${missing.join(", ")}`);
  const view = new ClusterView(tools, namespace);
  const choose: Ask = (question, names, isOpen) => {
    if (ask === undefined)
      throw new Problem("InvalidBinding", `no terminal to ask for the ${question} on; set it by a flag`);
    if (names.length === 0 && !isOpen) throw new Problem("TargetNotFound", `there is no ${question} to choose from`);
    return ask(question, names.map(plain), isOpen);
  };
  const resource = await view.kindCalled(wishes.kind ?? (await choose("kind", (await view.kinds()).map(titleOf))));
  const name = wishes.object ?? (await choose(resource.kind, await view.names(resource)));
  const live = await view.object(resource, name);
  const schema = await view.schemaOf(resource);
  const secrets: Map<string, Awaited<ReturnType<ClusterView["secret"]>>> = new Map();
  const fields: Required<FieldWish>[] = [];
  const complete = async (wish: FieldWish) => {
    const path = wish.path ?? (await choose("field", textPaths(live, schema), true));
    const secret = wish.secret ?? (await choose("Secret", await view.names(SECRETS)));
    const source = secrets.get(secret) ?? (await view.secret(secret));
    secrets.set(secret, source);
    const key = wish.key ?? (await choose(`key of Secret ${secret}`, [...source.data.keys()]));
    fields.push({ path, secret, key });
  };
  for (const wish of wishes.fields) await complete(wish);
  if (wishes.fields.length === 0) {
    await complete({});
    while ((await choose("next step", [PRINT, MORE])) === MORE) await complete({});
  }
  const chosen: Chosen = { resource, live, schema, secrets, fields };
  return proposalOf(chosen, flags.name ?? `${name}-${fields[0]?.secret}`, namespace);
}

const titleOf = ({ group, kind }: { group: string; kind: string }) => (group === "" ? kind : `${kind}.${group}`);
