/** `inlay render`: shows the bindings that compositions create from files, and the fields that bindings would write. Needs no cluster. */
import { Command } from "commander";
import { namespaceOption } from "./argument-types.ts";
import {
  type FileFlags,
  type InstallationFlags,
  readInput,
  reportMistakes,
  withFiles,
  withInstallation,
} from "./input-files.ts";
import { outputOption, print } from "./output.ts";

interface RenderFlags extends InstallationFlags, FileFlags {
  namespace: string;
  showValues?: boolean;
  vaultValues?: string;
}

export function renderCommand(): Command {
  return withInstallation(
    withFiles(new Command("render"), ", with compositions, claims, bindings and Secrets", "folder"),
  )
    .addOption(namespaceOption("objects that don't set one", "default"))
    .addOption(outputOption())
    .option("--show-values", "show the values, and not only their fields")
    .option("--vault-values <file>", "YAML file with the values of sources from Vault, below data, metadata and health")
    .addHelpText("after", "\nExample:\n  inlay render -f compositions/harbor -f claim.yaml -o yaml")
    .action(run);
}

async function run({ namespace, output, showValues = false, vaultValues, ...flags }: RenderFlags) {
  const [{ installation, files, mistakes }, { readFiles }, { render }, { opened }, { renderingText }] =
    await Promise.all([
      readInput(flags, true),
      import("../render/files.ts"),
      import("../render/render.ts"),
      import("../render/rendering.ts"),
      import("../render/rendering-text.ts"),
    ]);
  if (files.length === 0 && mistakes.length > 0) return reportMistakes(mistakes);
  const vault = readFiles(vaultValues === undefined ? [] : [vaultValues]);
  const rendering = opened(await render(files, namespace, vault.files, { installation }), showValues);
  const all = { ...rendering, mistakes: [...mistakes, ...vault.mistakes, ...rendering.mistakes] };
  await print(all, output, renderingText);
  reportMistakes(all.mistakes);
}
