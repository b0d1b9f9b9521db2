/** However a user starts the controller, it runs with the flags that keep its memory small, in the same process. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { startWithSmallHeap } from "../../../src/cli/controller.ts";

const program = join(import.meta.dirname, "..", "..", "..", "src", "main.ts");
/** Prints how each start of the program begins. */
const HOOK = `const { pid, execArgv, env } = process;
console.log(JSON.stringify({ pid, flags: execArgv.slice(0, -2), malloc: env.MALLOC_ARENA_MAX }));`;
const FLAGS = ["--disable-sigusr1", "--max-semi-space-size=2", "--heap-growing-percent=10"];

interface Started {
  file: string;
  args: readonly string[];
  env: NodeJS.ProcessEnv;
}

function started(execArgv: string[], env: NodeJS.ProcessEnv = {}): Started | undefined {
  let found: Started | undefined;
  const execve = ((file: string, args: readonly string[] = [], environment: NodeJS.ProcessEnv = {}) => {
    found = { file, args, env: environment };
  }) as NodeJS.Process["execve"];
  startWithSmallHeap({ argv: ["node", "main.js", "controller"], env, execArgv, execPath: "/bin/node", execve });
  return found;
}

describe("the start of the controller", () => {
  it("adds the flags of Node and the settings of malloc, and keeps all others", () => {
    const { file, args, env } = started(["--import", "hook.mjs"], { HOME: "/root", MALLOC_ARENA_MAX: "2" }) ?? {};
    assert.equal(file, "/bin/node");
    assert.deepEqual(args, ["/bin/node", ...FLAGS, "--import", "hook.mjs", "main.js", "controller"]);
    assert.deepEqual(env, { HOME: "/root", MALLOC_ARENA_MAX: "2", MALLOC_TRIM_THRESHOLD_: "131072" });
  });

  it("changes nothing if it has the flags", () => {
    assert.equal(started(FLAGS), undefined);
    assert.equal(started([], { NODE_OPTIONS: FLAGS.join(" ") }), undefined);
  });

  it("keeps the flags for the heap that a user has chosen, and closes the debugger nevertheless", () => {
    for (const own of ["--max-semi-space-size=16", "--max_semi_space_size=16"])
      assert.deepEqual(started([own])?.args.slice(1, 3), ["--disable-sigusr1", own]);
    const given = { NODE_OPTIONS: "--heap-growing-percent=40" };
    assert.deepEqual(started([], given)?.args.slice(1), ["--disable-sigusr1", "main.js", "controller"]);
    assert.deepEqual(started(["--max-old-space-size=200"])?.args.slice(1, 1 + FLAGS.length), FLAGS);
  });

  it("keeps the process, its output and its exit code, and prints no warning", async function () {
    this.timeout("60s");
    const folder = await mkdtemp(join(tmpdir(), "inlay-heap-"));
    try {
      const hook = join(folder, "hook.mjs");
      await writeFile(hook, HOOK);
      const args = ["--import", hook, program, "controller", "--config", join(folder, "none.yaml")];
      const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
      const exit = new Promise((resolve) => child.once("exit", resolve));
      const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
      const starts = stdout.trim().split("\n");
      assert.deepEqual(
        starts.map((each) => JSON.parse(each)),
        [
          { pid: child.pid, flags: [] },
          { pid: child.pid, flags: FLAGS, malloc: "1" },
        ],
      );
      assert.equal(await exit, 1);
      assert.equal(stderr.trim().split("\n").length, 1, stderr);
      assert.match(stderr, /none\.yaml/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
