/** `inlay diff`: shows what would change in the cluster if files were applied and Inlay reconciled. Changes nothing. */
import { Command, Option } from "commander";
import { namespaceOption } from "./argument-types.ts";
import { KUBECONFIG_FLAG, withTools } from "./cluster.ts";
import {
  type FileFlags,
  type InstallationFlags,
  readInput,
  reportMistakes,
  withFiles,
  withInstallation,
} from "./input-files.ts";
import { type OutputFormat, outputOption, print } from "./output.ts";

interface DiffFlags extends InstallationFlags, Omit<FileFlags, "output"> {
  output: OutputFormat | "jsonpatch";
  showValues?: boolean;
}

/** The exit code if something would change. A failure has 2. */
const DIFFERS = 1;
const FAILED = 2;

export function diffCommand(): Command {
  return withInstallation(withFiles(new Command("diff")))
    .option(...KUBECONFIG_FLAG)
    .addOption(namespaceOption("objects that don't set one (default: the kubeconfig's)"))
    .addOption(outputOption("jsonpatch"))
    .addOption(new Option("--show-values", "show the values in json, yaml and jsonpatch"))
    .addHelpText(
      "after",
      "\nExit codes: 0 nothing would change, 1 something would change, 2 failure\n\nExample:\n  inlay diff -f deploy/ -o jsonpatch",
    )
    .action(run);
}

async function run({ filename, output, showValues = false, ...flags }: DiffFlags): Promise<void> {
  const [{ installation, files, mistakes }, { diff }, result, { opened }, { shellWord }] = await Promise.all([
    readInput({ filename, ...flags }),
    import("../diff/diff.ts"),
    import("../diff/difference.ts"),
    import("../render/rendering.ts"),
    import("../kube/grant-commands.ts"),
  ]);
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
