/** The Go programs that a test file waits for: those that it uses, directly or through helpers, and no others. */
import assert from "node:assert/strict";
import { globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { neededPrograms } from "../../whole-run/needed-programs.ts";

const test = join(import.meta.dirname, "..", "..");
const needs = (file: string) => neededPrograms(file).map(({ name }) => name);

describe("the need for a Go program", () => {
  let folder: string;
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "inlay-needs-"));
  });
  after(() => rmSync(folder, { recursive: true }));

  it("follows from the import of a helper that uses the server", () => {
    const server = relative(folder, join(test, "control-plane", "vault.ts"));
    write("helper.ts", `import {\n  startVault,\n} from "${server}";`);
    assert.deepEqual(needs(write("static.ts", 'import { one } from "./helper.ts";')), ["vault"]);
    assert.deepEqual(needs(write("dynamic.ts", 'const { one } = await import("./helper.ts");')), ["vault"]);
    assert.deepEqual(needs(write("again.ts", 'export { one } from "./static.ts";')), ["vault"]);
  });

  it("does not follow from a name in a string, nor from circular imports", () => {
    assert.deepEqual(needs(write("one.ts", 'import "./two.ts";\n// helm/program.ts')), []);
    write("two.ts", 'import "./three.ts";');
    write("three.ts", 'import "./two.ts";');
    assert.deepEqual(needs(join(folder, "one.ts")), []);
  });

  it("applies to the tests that use each program, and not to the setup that all files share", () => {
    const files = globSync("{unit,integration,e2e,faults,demand,whole-run}/**/*.test.ts", { cwd: test });
    const all = new Map(files.map((file) => [file, needs(join(test, file))]));
    assert.deepEqual(all.get("integration/vault-server.test.ts"), ["vault"]);
    assert.deepEqual(all.get("unit/workflows.test.ts"), ["actionlint", "helm"]);
    assert.deepEqual(all.get("e2e/chart.test.ts"), ["helm"]);
    assert.deepEqual(all.get("unit/gitops/health.test.ts"), ["gitops"]);
    assert.deepEqual(all.get("unit/composition/oracle.test.ts"), ["oracle"]);
    assert.deepEqual(all.get("integration/alerts.test.ts"), ["promql"]);
    // Argo CD and Flux take minutes to build, and are for the tests of their own.
    const used = new Set([...all.values()].flat());
    assert.deepEqual([...used].sort(), ["actionlint", "gitops", "helm", "oracle", "promql", "vault"]);
    assert.deepEqual(needs(join(test, "gitops-controllers", "flux.test.ts")), ["kustomize-controller", "helm"]);
    const needing = [...all.values()].filter((programs) => programs.length > 0);
    assert.ok(needing.length < files.length / 4, `${needing.length} of ${files.length} files`);
  });
});
