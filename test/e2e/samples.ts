/**
 * Runs the README of a sample word for word: the commands of its blocks from the top of the repository, beside a controller
 * with the rights of deploy/manifests. What a block of plain text shows is what the commands before it print.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { sharedController } from "../controller/shared.ts";

const root = join(import.meta.dirname, "..", "..");
const run = promisify(execFile);
export const folders = readdirSync(join(root, "samples"), { withFileTypes: true })
  .filter((each) => each.isDirectory())
  .map(({ name }) => name);

/** Commands that stand together, and what they print, if that is shown. */
interface Step {
  commands: string;
  prints: string | undefined;
}

/** Tests one of so many equal shares of the samples, so that the shares run side by side. */
export function testSamples(share: number, shares: number): void {
  describe(`the samples, share ${share} of ${shares}:`, () => {
    before(() => sharedController(controlPlane()).start());

    for (const name of folders.filter((_, index) => index % shares === share - 1)) {
      it(`the README of ${name} does what it says, and leaves nothing`, async () => {
        const text = await readFile(join(root, "samples", name, "README.md"), "utf8");
        const before = await namespaces();
        for (const step of stepsOf(text)) await take(step);
        assert.deepEqual(
          (await namespaces()).filter((each) => !before.includes(each)),
          [],
        );
      }).timeout("2m");
    }
  });
}

function stepsOf(markdown: string): Step[] {
  const blocks = [...markdown.matchAll(/^```sh\n(.*?)^```\n+(?:```text\n(.*?)^```\n)?/gms)];
  assert.ok(blocks.length > 2, "a story has commands");
  return blocks.map(([, commands = "", prints]) => ({ commands, prints }));
}

/** Changes are made once; what is only looked at is looked at until it has come about. */
async function take({ commands, prints }: Step): Promise<void> {
  if (prints === undefined) await shell(commands);
  else {
    for (const line of commands.trim().split("\n")) assert.match(line, /^kubectl (get|describe) /);
    await eventually(async () => assert.equal(alike(await shell(commands)), alike(prints)));
  }
}

async function shell(commands: string): Promise<string> {
  const { kubectlProgram, folder } = controlPlane();
  const path = [dirname(kubectlProgram), process.env["PATH"]].join(delimiter);
  const env = { ...process.env, PATH: path, HOME: folder };
  return (await run("sh", ["-ec", commands], { cwd: root, env })).stdout;
}

/** Ages differ, and the width of columns with them. */
function alike(printed: string): string {
  return printed
    .replaceAll(/\b\d+[smh](\d+s)?$/gm, "AGE")
    .replaceAll(/ {2,}/g, " ")
    .trim();
}

async function namespaces(): Promise<string[]> {
  return (await controlPlane().kubectl("get", "namespaces", "--output=name")).stdout.split("\n");
}
