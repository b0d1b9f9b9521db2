/** Finds Helm for tests: INLAY_TEST_HELM names the program, otherwise it is built once from go.mod into a cache. */
import { findGoProgram, type GoProgram } from "../control-plane/go-program.ts";
import type { Environment } from "../control-plane/programs.ts";

const helm: GoProgram = {
  name: "helm",
  sources: import.meta.dirname,
  package: "helm.sh/helm/v3/cmd/helm",
  called: "Helm",
  takes: "about 3 minutes",
  purpose: "These tests install Inlay's chart with Helm.",
};

/** The build of this process. A failed build is not repeated: it would fail again. */
let build: Promise<string> | undefined;

/** The path of the program, which is built if necessary. */
export async function helmProgram(env: Environment = process.env): Promise<string> {
  const program = env["INLAY_TEST_HELM"];
  if (program) return program;
  build ??= findGoProgram(helm, env);
  return await build;
}
