/** The house rules that a reader relies on: which room may import which, and how a file opens. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve, sep } from "node:path";
import { promisify } from "node:util";
import { generated } from "../../apis/generate.ts";

const root = join(import.meta.dirname, "..", "..");
const src = join(root, "src");
const GENERATED = generated.map(({ module }) => relative("src", module));
const LONGEST = 300;
/** What a room may import beside itself; every other room is a stage. */
const ROOMS: Record<string, string[]> = { model: [], kube: ["model"] };
const STAGE = ["model", "kube"];
/** Not a room: like the files of src/ itself, it joins them. */
const JOINS = "cli";

interface SourceFile {
  path: string;
  room: string;
  text: string;
}

/** The modules that a file imports, types included, wherever the import stands. */
function importsOf(text: string): string[] {
  return [...text.matchAll(/(?:\bfrom|\bimport|\bimport\()\s*["']([^"']+)["']/g)].map(([, module = ""]) => module);
}

/** Why a file may not import a module, or undefined. */
function violation({ path, room }: SourceFile, module: string): string | undefined {
  if (/^(@kubernetes\/client-node|undici)(\/|$)/.test(module) && room !== "kube") return `${path} imports ${module}`;
  if (!module.startsWith(".") || room === "" || room === JOINS) return undefined;
  const [target = "", ...below] = relative(src, resolve(src, dirname(path), module)).split(sep);
  const allowed = [room, ...(ROOMS[room] ?? STAGE)];
  return below.length > 0 && allowed.includes(target) ? undefined : `${path} imports ${module}`;
}

describe("the source", () => {
  let files: SourceFile[];
  before(async () => {
    const paths = (await readdir(src, { recursive: true })).filter((path) => path.endsWith(".ts"));
    files = await Promise.all(
      paths.map(async (path) => ({
        path,
        room: path.includes(sep) ? (path.split(sep)[0] ?? "") : "",
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

  it("lets a stage import model/ and kube/ and never another stage, and nobody but kube/ the client", () => {
    const violations = files.flatMap((file) => importsOf(file.text).map((module) => violation(file, module)));
    assert.deepEqual(violations.filter(Boolean), []);
    const planted = { path: join("queue", "planted.ts"), room: "queue", text: "" };
    for (const module of ["../apply/decide.ts", "../main.ts", "undici", "@kubernetes/client-node"]) {
      assert.ok(violation(planted, module), module);
    }
    for (const module of ["./work-queue.ts", "../kube/client.ts", "../model/plan.ts", "node:fs"]) {
      assert.equal(violation(planted, module), undefined, module);
    }
  });
});

describe("the linter", () => {
  let rooms: string[];
  before(async () => {
    const folders = await readdir(src, { withFileTypes: true });
    rooms = folders.filter((each) => each.isDirectory() && each.name !== JOINS).map(({ name }) => name);
  });

  /** Of files that import one module each, those in which it finds a forbidden import. */
  async function refused(imports: Record<string, string>): Promise<string[]> {
    const folder = await mkdtemp(join(tmpdir(), "inlay-lint-"));
    try {
      await copyFile(join(root, "biome.json"), join(folder, "biome.json"));
      for (const [path, module] of Object.entries(imports)) {
        await mkdir(join(folder, dirname(path)), { recursive: true });
        await writeFile(join(folder, path), `import { x } from "${module}";\n\nexport const y = x;\n`);
      }
      const biome = join(root, "node_modules", ".bin", "biome");
      const flags = ["--only=style/noRestrictedImports", "--vcs-enabled=false", "--reporter=github"];
      const said = await promisify(execFile)(biome, ["lint", ...flags], { cwd: folder }).catch((error) => error);
      const found = [...`${said.stdout}`.matchAll(/noRestrictedImports,file=([^,]+)/g)].map(([, path = ""]) => path);
      return Object.keys(imports).filter((path) => found.some((each) => each.endsWith(path)));
    } finally {
      await rm(folder, { recursive: true });
    }
  }

  it("knows every room: it finds an import of a stage in each of the others", async () => {
    const planted = Object.fromEntries(
      rooms.flatMap((room) =>
        rooms
          .filter((stage) => stage !== room && !["model", "kube"].includes(stage))
          .map((stage) => [`src/${room}/${stage}.ts`, `../${stage}/x.ts`]),
      ),
    );
    assert.deepEqual(await refused(planted), Object.keys(planted));
  });

  it("finds the client and the files that join the rooms in every stage, and nothing where all is well", async () => {
    const planted = Object.fromEntries(
      rooms
        .filter((room) => room !== "kube")
        .flatMap((room) => [
          [`src/${room}/http.ts`, "undici"],
          [`src/${room}/client.ts`, "@kubernetes/client-node"],
          [`src/${room}/main.ts`, "../main.ts"],
        ]),
    );
    const well = {
      "src/kube/http.ts": "undici",
      "src/apply/kube.ts": "../kube/client.ts",
      "src/kube/model.ts": "../model/x.ts",
    };
    assert.deepEqual(await refused({ ...planted, ...well }), Object.keys(planted));
  });
});
