/** Runs the go command for programs that the tests build from source. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

interface GoOptions {
  env?: Record<string, string>;
  onOutput?: (line: string) => unknown;
  onMessage?: (line: string) => unknown;
}

type Go = (folder: string, args: string[], options?: GoOptions) => Promise<void>;

/**
 * Returns a function that runs go in a folder. It fails with the end of go's output, or with `missing` if go is not installed.
 */
export function goIn(missing: string): Go {
  return async (folder, args, { env, onOutput, onMessage } = {}) => {
    const child = spawn("go", args, {
      cwd: folder,
      env: { ...process.env, ...env, GOWORK: "off" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const messages: string[] = [];
    createInterface(child.stdout).on("line", (line) => onOutput?.(line));
    createInterface(child.stderr).on("line", (line) => {
      messages.push(line);
      if (messages.length > 30) messages.shift();
      onMessage?.(line);
    });
    await new Promise<void>((resolve, reject) => {
      child.on("error", (cause: NodeJS.ErrnoException) =>
        reject(cause.code === "ENOENT" ? new Error(missing, { cause }) : cause),
      );
      child.on("close", (code, signal) => {
        if (code === 0) return resolve();
        const how = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
        reject(new Error(`go ${args.slice(0, 2).join(" ")} ${how} in ${folder}:\n${messages.join("\n")}`));
      });
    });
  };
}
