/** `inlay validate`: checks the objects of Inlay in files, without a cluster or against one. Changes nothing. */
import { Command } from "commander";
import type { Validation } from "../validate/findings.ts";
import type { validate } from "../validate/validate.ts";
import { namespaceOption } from "./argument-types.ts";
import {
  crdsOption,
  type FileFlags,
  type InstallationFlags,
  readInput,
  withFiles,
  withInstallation,
} from "./input-files.ts";
import { outputOption, print } from "./output.ts";

interface ValidateFlags extends InstallationFlags, FileFlags {
  strict?: boolean;
}

type LookUp = NonNullable<Parameters<typeof validate>[1]>;

export function validateCommand(): Command {
  return withInstallation(withFiles(new Command("validate")))
    .addOption(crdsOption("targets, to check fields"))
    .option("--cluster", "also check against your cluster: kinds, selected objects, connections and grants")
    .option("--kubeconfig <file>", "with --cluster: path to a kubeconfig file (default: as kubectl)")
    .addOption(namespaceOption("objects that don't set one (default: default, or with --cluster the kubeconfig's)"))
    .option("--strict", "exit with 1 for warnings too")
    .addOption(outputOption())
    .addHelpText("after", "\nExample:\n  inlay validate -f deploy/ --crds crds/ -o json")
    .action(run);
}

async function run(flags: ValidateFlags): Promise<void> {
  const [{ mistakes, ...input }, { validate }, { finding, isFailed, validationText }] = await Promise.all([
    readInput(flags),
    import("../validate/validate.ts"),
    import("../validate/findings.ts"),
  ]);
  const check = (namespace: string, lookUp?: LookUp) => validate({ ...input, namespace }, lookUp);
  const checked = flags.cluster ? await against(flags, check) : await check(flags.namespace ?? "default");
  const unread = mistakes.map((each) => finding("error", each));
  const validation = { ...checked, errors: [...unread, ...checked.errors] };
  await print(validation, flags.output, validationText);
  if (isFailed(validation, flags.strict ?? false)) process.exitCode = 1;
}

/** Calls `check` with the readers of the cluster. */
async function against(
  flags: ValidateFlags,
  check: (namespace: string, lookUp: LookUp) => Promise<Validation>,
): Promise<Validation> {
  const [{ withTools }, { LiveLists }, { Schemas }, { askCluster }] = await Promise.all([
    import("./cluster.ts"),
    import("../explain/live-lists.ts"),
    import("../kube/schemas.ts"),
    import("../validate/cluster-facts.ts"),
  ]);
  return withTools(flags, ({ reader, discovery, transport }, namespace) => {
    const readers = {
      reader,
      lists: new LiveLists(transport),
      discovery,
      schemas: new Schemas(transport),
    };
    return check(namespace, (objects, analysisIn) => askCluster(readers, objects, analysisIn));
  });
}
