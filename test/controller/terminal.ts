/** Runs `inlay` on a pseudo-terminal, which `script` of util-linux provides, and types into it. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { eventually } from "./eventually.ts";
import { foundIn } from "./leak-detector.ts";

const program = join(import.meta.dirname, "..", "..", "src", "main.ts");
const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;

export interface Step {
  /** The text that the screen shows before the user types. */
  shows: RegExp;
  types: string;
}

/** Standard output is written to `output`, as with `> file`. Returns everything that the terminal showed, and the exit code. */
export async function onTerminal(
  args: readonly string[],
  output: string,
  steps: readonly Step[],
): Promise<{ screen: string; code: number }> {
  const command = `stty cols 120; ${[process.execPath, program, ...args].map(quoted).join(" ")} > ${quoted(output)}`;
  const child = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], {
    env: { ...process.env, TERM: "xterm" },
  });
  let [screen, seen] = ["", 0];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    screen += stripVTControlCharacters(text);
  });
  const closed = once(child, "close");
  try {
    for (const { shows, types } of steps) {
      await eventually(() => assert.match(screen.slice(seen), shows));
      seen = screen.length;
      child.stdin.write(types);
    }
  } catch (error) {
    // The terminal hangs up, which ends the program.
    child.kill("SIGTERM");
    throw error;
  }
  const [code] = await closed;
  assert.deepEqual(foundIn(screen), []);
  return { screen, code };
}
