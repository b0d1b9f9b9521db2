/** A controller that crashes logs the place in the source, and none of its values. Runs real processes. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { foundIn, secretText } from "../../controller/leak-detector.ts";

const root = join(import.meta.dirname, "..", "..", "..");
const MODULE = JSON.stringify(join(root, "src", "apimachinery", "secret-value.ts"));

/** Programs that hold `value` when they crash, as a part of the controller could. */
const crashes: Record<string, string> = {
  "an error with a cause, many errors in it, and the value in each": `
    const inner = new AggregateError([new Error(value), value], value, { cause: { value } });
    throw Object.assign(new Error(value + "\\n    at " + value, { cause: inner }), { value, code: value })`,
  "a text that is no JSON": "JSON.parse(value)",
  "a rejection that is no error": "Promise.reject(value)",
  "a sealed value": "throw Object.assign(new Error(new SecretValue(value)), { cause: new SecretValue(value) })",
};

describe("a controller that crashes", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "inlay-crash-"));
    await writeFile(
      join(folder, "config"),
      JSON.stringify({
        // No server listens on this port.
        clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }],
        contexts: [{ name: "x", context: { cluster: "c" } }],
        "current-context": "x",
      }),
    );
  });
  after(() => rm(folder, { recursive: true }));

  for (const [what, program] of Object.entries(crashes)) {
    it(`prints no value: ${what}`, async () => {
      const value = secretText("crash");
      const bug = join(folder, "bug.mjs");
      await writeFile(
        bug,
        `import { createRequire } from "node:module";
import { SecretValue } from ${MODULE};
const require = createRequire(import.meta.url);
const value = process.env.VALUE;
const write = process.stdout.write;
process.stdout.write = (text, ...rest) => {
  if (String(text).includes("controller started")) setTimeout(() => { ${program} }, 1);
  return write.call(process.stdout, text, ...rest);
};`,
      );
      const { output, code } = await run(["--import", bug], { VALUE: value });
      assert.ok(output.includes("controller started"), output);
      assert.match(output, /"msg":"unexpected error; exiting"/);
      assert.deepEqual(foundIn(output), []);
      assert.equal(code, 1);
    });
  }

  it("prints no content of a kubeconfig that it can't parse", async () => {
    const token = secretText("token");
    const file = join(folder, "broken");
    await writeFile(file, `users: [{ user: { token: ${token}`);
    const { output, code } = await run([], {}, file);
    assert.match(output, /broken is not a kubeconfig: it is not YAML/);
    assert.deepEqual(foundIn(output), []);
    assert.equal(code, 1);
  });

  async function run(args: string[], env: Record<string, string>, kubeconfig = join(folder, "config")) {
    const command = [...args, join(root, "src", "main.ts"), "controller", "--kubeconfig", kubeconfig];
    const child = spawn(process.execPath, [...command, "--log-level", "debug"], { env: { ...process.env, ...env } });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (chunk: string) => {
        output += chunk;
      });
    }
    const [code] = await once(child, "close");
    return { output, code };
  }
});
