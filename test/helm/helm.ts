/** Runs Helm with arguments, and returns what it prints. An error contains what Helm printed. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { helmProgram } from "./program.ts";

const run = promisify(execFile);

export const chart = join(import.meta.dirname, "..", "..", "deploy", "chart");
/** The version of Kubernetes for which Helm renders without a cluster. */
export const KUBERNETES = "1.36.0";

export interface HelmOutput {
  stdout: string;
  stderr: string;
}

/** The exit code of Helm is not 0. The message is what Helm printed to stderr. */
export class HelmError extends Error {}

/** Runs Helm on a cluster, or without one. Helm's files are in the folder of the cluster. */
export async function helm(
  args: readonly string[],
  cluster?: Pick<ControlPlane, "kubeconfigFile" | "folder">,
): Promise<HelmOutput> {
  const env = {
    PATH: process.env["PATH"],
    HOME: cluster?.folder ?? "/nowhere",
    KUBECONFIG: cluster?.kubeconfigFile ?? "/nowhere",
  };
  try {
    return await run(await helmProgram(), args, { env, maxBuffer: 2 ** 26 });
  } catch (error) {
    const { stderr } = error as Partial<HelmOutput>;
    if (stderr === undefined) throw error;
    throw new HelmError(stderr, { cause: error });
  }
}
