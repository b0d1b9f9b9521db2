/** `inlay diff`: shows what would change in the cluster if files were applied and Inlay reconciled. Changes nothing. */
import { Command, Option } from "commander";
import { namespaceName } from "./argument-types.ts";
import { KUBECONFIG_FLAG, withTools } from "./cluster.ts";
import { reportMistakes, withFiles } from "./input-files.ts";
import { type InstallationFlags, withInstallation } from "./installation-flags.ts";
import { type OutputFormat, outputOption, print } from "./output.ts";

interface DiffFlags extends InstallationFlags {
  filename: string[];
  kubeconfig?: string;
  namespace?: string;
  output: OutputFormat | "jsonpatch";
  showValues?: boolean;
}

/** The exit code if something would change. A failure has 2. */
const DIFFERS = 1;
const FAILED = 2;

export function diffCommand(): Command {
  return withInstallation(withFiles(new Command("diff")))
    .option(...KUBECONFIG_FLAG)
    .option(
      "-n, --namespace <namespace>",
      "namespace of objects that don't set one (default: the kubeconfig's)",
      namespaceName,
    )
    .addOption(outputOption("jsonpatch"))
    .addOption(new Option("--show-values", "show the values in json, yaml and jsonpatch"))
    .addHelpText(
      "after",
      "\nExit codes: 0 nothing would change, 1 something would change, 2 failure\n\nExample:\n  inlay diff -f deploy/ -o jsonpatch",
    )
    .action(run);
}

async function run({ filename, output, showValues = false, ...flags }: DiffFlags): Promise<void> {
  const [{ loadInstallation }, { readFiles }, { diff }, result, { opened }, { shellWord }] = await Promise.all([
    import("./config-file.ts"),
    import("../render/files.ts"),
    import("../diff/diff.ts"),
    import("../diff/difference.ts"),
    import("../render/rendering.ts"),
    import("../kube/grant-commands.ts"),
  ]);
  const installation = loadInstallation(flags.config, flags.controllerNamespace);
  const { files, mistakes } = readFiles(filename);
  if (files.length === 0 && mistakes.length > 0) return reportMistakes(mistakes, FAILED);
  const inNamespace = flags.namespace === undefined ? [] : [`-n ${flags.namespace}`];
  const chosen = [...filename.map((each) => `-f ${shellWord(each)}`), ...inNamespace].join(" ");
  const access = `inlay rbac ${chosen} --cluster | kubectl apply -f -`;
  const seen = await withTools(flags, ({ transport }, namespace) =>
    diff(transport, files, namespace, installation, access),
  );
  const difference = opened({ ...seen, mistakes: [...mistakes, ...seen.mistakes] }, showValues);
  if (output === "jsonpatch") await print(result.patchesIn(difference), "json", () => []);
  else await print(difference, output, result.differenceText);
  if (result.differs(difference)) process.exitCode = DIFFERS;
  reportMistakes(difference.mistakes, FAILED);
  if (result.isIncomplete(difference)) process.exitCode = FAILED;
}
