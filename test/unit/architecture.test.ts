/** The rules of docs/architecture.md: which layer may import which, which layers do no I/O, and how a file opens. */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join, sep } from "node:path";
import { allViolations, LAYERS, violations } from "../../lint/layers.ts";

const src = join(import.meta.dirname, "..", "..", "src");
/** The layers that do no I/O, and what they may import of Node. */
const PURE = ["composition", "transform", "workloads", "api", "apimachinery"];
const WITHOUT_IO = /^import .* from "node:(crypto|util)";|^import \{ (?:isIPv6|BlockList, isIP) \} from "node:net";/;

describe("the layers", () => {
  const paths = LAYERS.flat().map((layer) => `${layer}/planted.ts`);
  const importing = (path: string, module: string) => violations(path, `import type { X } from "${module}";`);

  it("import downwards only", () => {
    assert.deepEqual(allViolations(), []);
  });

  it("may import each layer below them, and none above or beside them", () => {
    for (const [depth, layers] of LAYERS.entries()) {
      const below = LAYERS.slice(depth + 1).flat();
      for (const layer of layers)
        for (const other of LAYERS.flat().filter((each) => each !== layer && each !== "main")) {
          const path = layer === "main" ? "main.ts" : `${layer}/deep/planted.ts`;
          const module = layer === "main" ? `./${other}/x.ts` : `../../${other}/x.ts`;
          assert.equal(importing(path, module).length, below.includes(other) ? 0 : 1, `${path} imports ${module}`);
        }
    }
  });

  it("may import files of their own, packages and Node", () => {
    for (const path of paths)
      for (const module of ["./beside.ts", "node:fs", "re2js"] as const) assert.deepEqual(importing(path, module), []);
  });

  it("leave the client of the API server to kube/, and know every folder", () => {
    for (const module of ["undici", "@kubernetes/client-node"]) {
      assert.deepEqual(importing("kube/planted.ts", module), []);
      assert.equal(importing("cache/planted.ts", module).length, 1);
      assert.equal(violations("cache/planted.ts", `await import("${module}")`).length, 1);
    }
    assert.equal(violations("elsewhere/planted.ts", "").length, 1);
  });
});

describe("the source", () => {
  let files: { path: string; text: string }[];
  before(async () => {
    const paths = (await readdir(src, { recursive: true })).filter((path) => path.endsWith(".ts"));
    files = await Promise.all(paths.map(async (path) => ({ path, text: await readFile(join(src, path), "utf8") })));
    assert.ok(files.length > 30, `${files.length} files`);
  });

  it("opens every file by saying what it is responsible for", () => {
    const silent = files.filter(({ text }) => !/^(#!.*\n)?\/\*\*\s*\S/.test(text));
    assert.deepEqual(
      silent.map(({ path }) => path),
      [],
    );
  });

  it(`does no I/O in ${PURE.join(", ")}`, () => {
    const isPure = (module: string) => new RegExp(`^(\\./|(\\.\\./)+(${PURE.join("|")})/|(?!node:|\\.))`).test(module);
    const imports = files
      .filter(({ path }) => PURE.includes(path.split(sep)[0] ?? ""))
      .flatMap(({ path, text }) =>
        [...text.matchAll(/^(?:import|export|\}|.*await import\().*"([^"\n]+)".*$/gm)].flatMap(([line, module = ""]) =>
          isPure(module) || WITHOUT_IO.test(line) ? [] : `${path}: ${line}`,
        ),
      );
    assert.deepEqual(imports, []);
  });
});
