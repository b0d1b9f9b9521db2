/** `inlay validate`: checks the objects of Inlay in files, without a cluster or against one. Changes nothing. */
import { Command } from "commander";
import type { Validation } from "../validate/findings.ts";
import type { validate } from "../validate/validate.ts";
import { namespaceName } from "./argument-types.ts";
import { listed, withFiles } from "./input-files.ts";
import { type InstallationFlags, withInstallation } from "./installation-flags.ts";
import { type OutputFormat, outputOption, print } from "./output.ts";

interface ValidateFlags extends InstallationFlags {
  filename: string[];
  crds?: string[];
  namespace?: string;
  output: OutputFormat;
  cluster?: boolean;
  kubeconfig?: string;
  strict?: boolean;
}

type LookUp = NonNullable<Parameters<typeof validate>[1]>;

export function validateCommand(): Command {
  return withInstallation(withFiles(new Command("validate")))
    .option("--crds <file>", "file or folder with the CRDs of targets, to check fields; repeatable", listed)
    .option("--cluster", "also check against your cluster: kinds, selected objects, connections and grants")
    .option("--kubeconfig <file>", "with --cluster: path to a kubeconfig file (default: as kubectl)")
    .option(
      "-n, --namespace <namespace>",
      "namespace of objects that don't set one (default: default, or with --cluster the kubeconfig's)",
      namespaceName,
    )
    .option("--strict", "exit with 1 for warnings too")
    .addOption(outputOption())
    .addHelpText("after", "\nExample:\n  inlay validate -f deploy/ --crds crds/ -o json")
    .action(run);
}

async function run(flags: ValidateFlags): Promise<void> {
  const [{ loadInstallation }, { readFiles }, { validate }, { finding, isFailed, validationText }] = await Promise.all([
    import("./config-file.ts"),
    import("../render/files.ts"),
    import("../validate/validate.ts"),
    import("../validate/findings.ts"),
  ]);
  const { filename, crds: schemas = [], output, strict = false, cluster = false } = flags;
  const installation = loadInstallation(flags.config, flags.controllerNamespace);
  const [read, crds] = [readFiles(filename), readFiles(schemas)];
  const check = (namespace: string, lookUp?: LookUp) =>
    validate({ files: read.files, crds: crds.files, namespace, installation }, lookUp);
  const checked = cluster ? await against(flags, check) : await check(flags.namespace ?? "default");
  const unread = [...read.mistakes, ...crds.mistakes].map((each) => finding("error", each));
  const validation = { ...checked, errors: [...unread, ...checked.errors] };
  await print(validation, output, validationText);
  if (isFailed(validation, strict)) process.exitCode = 1;
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
