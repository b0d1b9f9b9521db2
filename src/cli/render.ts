/** `inlay render`: shows the bindings that compositions create from files, and the fields that bindings would write. Needs no cluster. */
import { Command, Option } from "commander";
import type { Mistake } from "../render/documents.ts";
import { namespaceName } from "./argument-types.ts";
import { terminalWidth } from "./terminal-width.ts";

interface RenderFlags {
  filename: string[];
  namespace: string;
  output: "table" | "yaml" | "json";
  showValues?: boolean;
  vaultValues?: string;
}

export function renderCommand(): Command {
  return new Command("render")
    .description("show the bindings that compositions create, and the fields that bindings write, without a cluster")
    .requiredOption(
      "-f, --filename <file>",
      "file, folder, or - for standard input, with compositions, claims, bindings and Secrets; repeatable",
      (file: string, files: string[] = []) => [...files, file],
    )
    .option("-n, --namespace <namespace>", "namespace of objects that don't set one", namespaceName, "default")
    .addOption(
      new Option("-o, --output <format>", "output format: table for people, json or yaml for programs")
        .choices(["table", "yaml", "json"])
        .default("table"),
    )
    .option("--show-values", "show the values, and not only their fields")
    .option("--vault-values <file>", "YAML file with the values of sources from Vault, below data, metadata and health")
    .addHelpText("after", "\nExample:\n  inlay render -f compositions/harbor -f claim.yaml -o yaml")
    .action(run);
}

async function run({ filename, namespace, output, showValues = false, vaultValues }: RenderFlags): Promise<void> {
  const [{ readFiles }, { render }, { opened }] = await Promise.all([
    import("../render/files.ts"),
    import("../render/render.ts"),
    import("../render/rendering.ts"),
  ]);
  const { files, mistakes } = readFiles(filename);
  if (files.length === 0 && mistakes.length > 0) return fail(mistakes);
  const vault = readFiles(vaultValues === undefined ? [] : [vaultValues]);
  const rendering = opened(await render(files, namespace, vault.files), showValues);
  const all = { ...rendering, mistakes: [...mistakes, ...vault.mistakes, ...rendering.mistakes] };
  const text = await textOf(all, output);
  if (text !== "") process.stdout.write(`${text}\n`);
  if (all.mistakes.length > 0) fail(all.mistakes);
}

function fail(mistakes: readonly Mistake[]): void {
  for (const { file, line, message } of mistakes) process.stderr.write(`${file}:${line}: ${message}\n`);
  process.exitCode = 1;
}

async function textOf(
  rendering: Parameters<typeof import("../render/rendering-text.ts").renderingText>[0],
  output: RenderFlags["output"],
) {
  if (output === "json") return (await import("../apimachinery/json.ts")).stringifyJson(rendering, 2);
  if (output === "yaml")
    return (await import("yaml"))
      .stringify(rendering, { aliasDuplicateObjects: false, compat: "yaml-1.1", lineWidth: 0 })
      .trimEnd();
  const width = terminalWidth(process.stdout, process.env);
  return (await import("../render/rendering-text.ts")).renderingText(rendering, width).join("\n");
}
