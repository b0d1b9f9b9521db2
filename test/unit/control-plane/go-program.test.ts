/** The cache of a Go program of the tests: its folder, and when the program is built again. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findGoProgram, goProgramPath, isBuilt } from "../../control-plane/go-program.ts";
import { GO_PROGRAMS } from "../../control-plane/go-programs.ts";

describe("a Go program of the tests", function () {
  // The first build also compiles Go's runtime.
  this.timeout("5m");
  let sources: string;
  const program = () => ({ name: "thing", sources, called: "the thing", takes: "a second", purpose: "Tests need it." });
  const path = () => goProgramPath(program(), { INLAY_CACHE: "/cache" });
  beforeEach(async () => {
    sources = await mkdtemp(join(tmpdir(), "inlay-go-program-"));
    await writeFile(join(sources, "go.mod"), "module inlay.dev/thing\n\ngo 1.25\n");
    await writeFile(join(sources, "main.go"), "package main\n\nfunc main() {}\n");
  });
  afterEach(() => rm(sources, { recursive: true }));

  it("has a folder whose name depends only on its sources", async () => {
    assert.match(await path(), /^\/cache\/thing\/[0-9a-f]{16}\/thing$/);
    const before = await path();
    await writeFile(join(sources, "README.md"), "text");
    assert.equal(await path(), before);
    for (const name of ["go.mod", "go.sum", "main.go", "more.go"]) {
      const known = await path();
      await writeFile(join(sources, name), `// ${name}`);
      assert.notEqual(await path(), known, name);
    }
  });

  it("is built again when a module changes that go.mod replaces with a folder", async () => {
    const module = join(sources, "other", "module");
    await mkdir(module, { recursive: true });
    await writeFile(join(module, "code.go"), "package module\n");
    const line = "inlay.dev/module => ./other/module";
    for (const directive of [
      `replace ${line}`,
      `replace (\n\texample.com/a => example.com/b v1.0.0\n\t${line} // local\n)`,
    ]) {
      await writeFile(join(sources, "go.mod"), `module inlay.dev/thing\n\n${directive}\n`);
      for (const name of ["go.mod", "code.go", "more.go"]) {
        const known = await path();
        await writeFile(join(module, name), `// ${directive} ${name}`);
        assert.notEqual(await path(), known, `${directive} ${name}`);
      }
      const known = await path();
      await writeFile(join(module, "README.md"), directive);
      assert.equal(await path(), known);
    }
    await writeFile(join(sources, "go.mod"), `module inlay.dev/thing\n\n// replace ${line}\n`);
    const known = await path();
    await writeFile(join(module, "code.go"), "package module\n");
    assert.equal(await path(), known);
  });

  it("reports the error of Go when the build fails, and leaves no files", async () => {
    const cache = await mkdtemp(join(tmpdir(), "inlay-cache-"));
    try {
      await writeFile(join(sources, "main.go"), "package main\n\nfunc main() { unknown() }\n");
      await assert.rejects(findGoProgram(program(), { INLAY_CACHE: cache }), /undefined: unknown/);
      await writeFile(join(sources, "main.go"), "package main\n\nfunc main() {}\n");
      const built = await findGoProgram(program(), { INLAY_CACHE: cache });
      assert.equal(built, await goProgramPath(program(), { INLAY_CACHE: cache }));
      // The program is in the cache now, so the test needs no Go.
      assert.equal(await findGoProgram(program(), { INLAY_CACHE: cache }), built);
    } finally {
      await rm(cache, { recursive: true });
    }
  });
});

describe("a variable of a Go program", () => {
  it("names an existing program that the tests use without a build, for Helm and Vault", async () => {
    for (const variable of ["INLAY_TEST_HELM", "INLAY_TEST_VAULT"]) {
      const program = GO_PROGRAMS.find((each) => each.variable === variable) ?? assert.fail(variable);
      const env = { [variable]: import.meta.filename };
      assert.equal(await findGoProgram(program, env), import.meta.filename);
      assert.equal(await isBuilt(program, env), true);
      assert.equal(await isBuilt(program, { INLAY_CACHE: "/nowhere" }), false);
    }
  });
});
