/** `inlay init`: writes a SecretBinding for a live object to standard output. */
import { Command } from "commander";
import type { Ask, Flags } from "../init/init.ts";
import { namespaceOption, objectName } from "./argument-types.ts";
import { KUBECONFIG_FLAG, withTools } from "./cluster.ts";
import { listed } from "./input-files.ts";

interface InitFlags extends Flags {
  kubeconfig?: string;
  namespace?: string;
}

/** The most choices on the screen. */
const PAGE_SIZE = 12;

export function initCommand(): Command {
  return new Command("init")
    .option(...KUBECONFIG_FLAG)
    .addOption(namespaceOption("the object and its Secrets (default: the kubeconfig's)"))
    .option("--target <kind/name>", "the object that needs the value, such as HarborCluster/harbor")
    .option("--path <path>", "the field that needs the value")
    .option("--secret <name>", "the Secret with the value", objectName)
    .option("--key <key>", "the key of the Secret")
    .option("--field <path=secret/key>", "a field, with the Secret and key of its value; repeatable", listed)
    .option("--name <name>", "name of the binding (default: OBJECT-SECRET)", objectName)
    .addHelpText(
      "after",
      "\nExample:\n  inlay init -n registry --target HarborCluster/harbor --path spec.storage.spec.s3.accesskey --secret bucket --key accessKeyID > binding.yaml",
    )
    .action(run);
}

async function run({ kubeconfig, namespace, ...flags }: InitFlags): Promise<void> {
  const isAsking = process.stdin.isTTY && process.stderr.isTTY;
  const { text, warnings } = await withTools({ kubeconfig, namespace }, async ({ transport, ...tools }, chosen) => {
    const [{ init }, { Schemas }] = await Promise.all([import("../init/init.ts"), import("../kube/schemas.ts")]);
    const all = { ...tools, schemas: new Schemas(transport) };
    return init(all, flags, chosen, isAsking ? await asker() : undefined);
  });
  for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
  process.stdout.write(text);
}

/** Asks on standard error, so that the binding alone is on standard output. */
async function asker(): Promise<Ask> {
  const { default: search } = await import("@inquirer/search");
  return async (question, names, isOpen = false) => {
    const found = (term = "") => {
      const matching = names.filter((name) => name.toLowerCase().includes(term.toLowerCase()));
      return isOpen && term !== "" && !names.includes(term) ? [...matching, term] : matching;
    };
    try {
      const source = async (term: string | undefined) => found(term).map((value) => ({ value }));
      return await search({ message: `${question}:`, source, pageSize: PAGE_SIZE }, { output: process.stderr });
    } catch (error) {
      if (error instanceof Error && error.name === "ExitPromptError") throw new Error("stopped; nothing was written");
      throw error;
    }
  };
}
