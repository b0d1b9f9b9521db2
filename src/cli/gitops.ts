/** `inlay gitops`: prints the settings with which Argo CD and Flux ignore the fields of bindings. Needs no cluster. */
import { Argument, Command } from "commander";
import { namespaceName } from "./argument-types.ts";
import { listed, reportMistakes, withFiles } from "./input-files.ts";
import { type OutputFormat, outputOption, print } from "./output.ts";

interface GitopsFlags {
  filename: string[];
  crds: string[];
  namespace: string;
  output: OutputFormat;
}

type Tool = "argocd" | "flux";

export function gitopsCommand(): Command {
  return withFiles(
    new Command("gitops").addArgument(
      new Argument("<tool>", "the tool that applies the files").choices(["argocd", "flux"]),
    ),
    ", with bindings, compositions, claims and CRDs",
  )
    .option("--crds <file>", "file or folder with the CRDs of targets and claims; repeatable", listed, [])
    .option("-n, --namespace <namespace>", "namespace of objects that don't set one", namespaceName, "default")
    .addOption(outputOption())
    .addHelpText("after", "\nExample:\n  inlay gitops argocd -f samples/harbor -o yaml")
    .action(run);
}

async function run(tool: Tool, { filename, crds, namespace, output }: GitopsFlags): Promise<void> {
  const [
    { readFiles },
    { readDocuments },
    { render },
    { isCrd, kindsOf },
    { writtenObjects },
    snippets,
    { gitopsText },
  ] = await Promise.all([
    import("../render/files.ts"),
    import("../render/documents.ts"),
    import("../render/render.ts"),
    import("../render/kinds.ts"),
    import("../render/written-objects.ts"),
    import("../render/gitops-snippets.ts"),
    import("../render/gitops-text.ts"),
  ]);
  const [{ files, mistakes: unreadable }, ofCrds] = [readFiles(filename), readFiles(crds)];
  const definitions = readDocuments(ofCrds.files);
  const objectsOf = ({ documents }: ReturnType<typeof readDocuments>) => documents.map(({ object }) => object);
  const known = { ownOnly: true, crds: objectsOf(definitions).filter(isCrd) };
  const unread = [...unreadable, ...ofCrds.mistakes, ...definitions.mistakes];
  if (files.length === 0 && unread.length > 0) return reportMistakes(unread);
  const rendering = await render(files, namespace, [], known);
  reportMistakes([...unread, ...rendering.mistakes]);
  const kinds = kindsOf([...objectsOf(readDocuments(files)), ...known.crds]);
  const written = writtenObjects(rendering, kinds);
  if (output === "table") return print(written, output, gitopsText);
  for (const note of written.notes) process.stderr.write(`note: ${note}\n`);
  await print(tool === "argocd" ? snippets.argocdSnippet(written) : snippets.fluxSnippet(written), output, () => []);
}
