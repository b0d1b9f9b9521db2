/** `inlay migrate`: converts the objects of another tool in files to objects of Inlay. Needs no cluster. */
import { Argument, Command } from "commander";
import { namespaceName } from "./argument-types.ts";
import { reportMistakes, withFiles } from "./input-files.ts";
import { type OutputFormat, outputOption, print } from "./output.ts";

interface MigrateFlags {
  filename: string[];
  namespace: string;
  output: OutputFormat;
}

export const TOOL_NAMES = ["kyverno", "vso", "patch-operator", "external-secrets", "replicator", "reflector"];

export function migrateCommand(): Command {
  return withFiles(
    new Command("migrate").addArgument(new Argument("<tool>", "the tool that you use now").choices(TOOL_NAMES)),
    ", with the objects of the tool",
  )
    .option("-n, --namespace <namespace>", "namespace of objects that don't set one", namespaceName, "default")
    .addOption(outputOption().default("yaml"))
    .addHelpText("after", "\nExample:\n  inlay migrate vso -f vault-static-secrets/ > bindings.yaml")
    .action(run);
}

async function run(name: string, { filename, namespace, output }: MigrateFlags): Promise<void> {
  const [{ readFiles }, { migrate }, { TOOLS }, { migrationText, migrationYaml }] = await Promise.all([
    import("../render/files.ts"),
    import("../migrate/migration.ts"),
    import("../migrate/tools.ts"),
    import("../migrate/text.ts"),
  ]);
  const load = TOOLS[name];
  if (load === undefined) throw new Error(`unknown tool ${name}`);
  const tool = await load();
  const { files, mistakes } = readFiles(filename);
  const { converted, lost, others } = migrate(tool, files, namespace);
  const all = [...mistakes, ...lost];
  const result = { converted, lost: all };
  await print(result, output === "yaml" ? "table" : output, output === "yaml" ? migrationYaml : migrationText);
  if (others > 0)
    process.stderr.write(
      `${others} other ${others === 1 ? "object is" : "objects are"} not of ${tool.title}, and ignored\n`,
    );
  if (converted.length === 0 && all.length === 0) throw new Error(`the files have no ${tool.objects}; correct -f`);
  reportMistakes(all);
}
