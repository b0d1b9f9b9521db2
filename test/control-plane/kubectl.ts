/** Runs kubectl with arguments and input, and returns its output. An error contains what kubectl printed. */
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";

export interface KubectlOutput {
  stdout: string;
  stderr: string;
}

interface Call {
  program: string;
  kubeconfig: string;
  /** The folder for its cache, instead of the user's own. */
  home: string;
  args: string[];
  stdin?: string;
}

export async function runKubectl({ program, kubeconfig, home, args, stdin }: Call): Promise<KubectlOutput> {
  const child = spawn(program, ["--kubeconfig", kubeconfig, ...args], {
    env: { PATH: process.env["PATH"], HOME: home },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const exited = new Promise<number | string>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(code ?? `${signal}`));
  });
  // A kubectl that reads no input, or has ended, closes the pipe. Its exit code shows whether that is an error.
  child.stdin.on("error", () => {});
  child.stdin.end(stdin ?? "");
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
  if (code === 0) return { stdout, stderr };
  throw new Error(`kubectl ${args.join(" ")} ended with ${code}: ${stderr.trim() || stdout.trim()}`);
}
