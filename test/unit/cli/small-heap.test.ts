/** However a user starts the controller, it runs with the flags that keep its memory small, in the same process. */
import assert from "node:assert/strict";
import { startWithSmallHeap } from "../../../src/cli/small-heap.ts";

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
    assert.deepEqual(args?.slice(-4), ["--import", "hook.mjs", "main.js", "controller"]);
    assert.ok(args?.includes("--max-semi-space-size=2") && args.includes("--disable-sigusr1"));
    assert.deepEqual(env, { HOME: "/root", MALLOC_ARENA_MAX: "2", MALLOC_TRIM_THRESHOLD_: "131072" });
  });

  it("changes nothing if it has the flags, or a user has chosen others", () => {
    const own = started([])?.args.filter((each) => each.startsWith("--")) ?? [];
    assert.ok(own.length > 0);
    assert.equal(started(own), undefined);
    assert.equal(started(["--max-semi-space-size=16"]), undefined);
    assert.equal(started([], { NODE_OPTIONS: "--heap-growing-percent=40" }), undefined);
  });
});
