/** The house rules that a reader relies on: how a file opens, and how long it may be. */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { generated } from "../../apis/generate.ts";

const root = join(import.meta.dirname, "..", "..");
const src = join(root, "src");
const GENERATED = generated.map(({ module }) => relative("src", module));
const LONGEST = 303;
interface SourceFile {
  path: string;
  text: string;
}

describe("the source", () => {
  let files: SourceFile[];
  before(async () => {
    const paths = (await readdir(src, { recursive: true })).filter((path) => path.endsWith(".ts"));
    files = await Promise.all(
      paths.map(async (path) => ({
        path,
        text: await readFile(join(src, path), "utf8"),
      })),
    );
    assert.ok(files.length > 30, `${files.length} files`);
  });

  it("opens every file by saying what it is for", () => {
    const silent = files.filter(({ text }) => !/^(#!.*\n)?\/\*\*\s*\S/.test(text));
    assert.deepEqual(
      silent.map(({ path }) => path),
      [],
    );
  });

  it(`has no file of more than ${LONGEST} lines`, () => {
    const long = files.filter(({ path, text }) => !GENERATED.includes(path) && text.split("\n").length - 1 > LONGEST);
    assert.deepEqual(
      long.map(({ path }) => path),
      [],
    );
  });
});
