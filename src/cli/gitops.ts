/** `inlay gitops`: prints the settings with which Argo CD and Flux ignore the fields of bindings. Needs no cluster. */
import { Argument, Command } from "commander";
import { namespaceOption } from "./argument-types.ts";
import { crdsOption, type FileFlags, reportMistakes, withFiles } from "./input-files.ts";
import { outputOption, print } from "./output.ts";

interface GitopsFlags extends FileFlags {
  crds: string[];
  namespace: string;
}

type Tool = "argocd" | "flux";

export function gitopsCommand(): Command {
  return withFiles(
    new Command("gitops").addArgument(
      new Argument("<tool>", "the tool that applies the files").choices(["argocd", "flux"]),
    ),
    ", with bindings, compositions, claims and CRDs",
  )
    .addOption(crdsOption("targets and claims").default([]))
    .addOption(namespaceOption("objects that don't set one", "default"))
    .addOption(outputOption())
    .addHelpText("after", "\nExample:\n  inlay gitops argocd -f samples/harbor -o yaml")
    .action(run);
}

async function run(tool: Tool, { filename, crds, namespace, output }: GitopsFlags): Promise<void> {
  const [{ readFiles }, { readDocuments }, analysis, { isCrd }, objects, snippets] = await Promise.all([
    import("../render/files.ts"),
    import("../render/documents.ts"),
    import("../render/analysis.ts"),
    import("../render/kinds.ts"),
    import("../render/written-objects.ts"),
    import("../render/gitops-snippets.ts"),
  ]);
  const [{ files, mistakes: unreadable }, ofCrds] = [readFiles(filename), readFiles(crds)];
  const definitions = readDocuments(ofCrds.files);
  const known = { ownOnly: true, crds: definitions.documents.map(({ object }) => object).filter(isCrd) };
  const unread = [...unreadable, ...ofCrds.mistakes, ...definitions.mistakes];
  if (files.length === 0 && unread.length > 0) return reportMistakes(unread);
  const analysed = await analysis.analyse(files, namespace, [], known);
  if (analysis.isWithoutBindings(analysed)) throw new Error(analysis.WITHOUT_BINDINGS);
  reportMistakes([...unread, ...analysed.mistakes]);
  const written = objects.writtenObjects(analysed);
  if (tool === "flux") written.notes.push(...objects.substituted(analysed));
  if (output === "table") return print(written, output, objects.gitopsText);
  const notes = [...written.notes, ...(written.objects.length === 0 ? [objects.NOTHING] : [])];
  for (const note of notes) process.stderr.write(`note: ${note}\n`);
  await print(tool === "argocd" ? snippets.argocdSnippet(written) : snippets.fluxSnippet(written), output, () => []);
}
