/** The test files that wait for the build of the Vault server: those that use it, directly or through helpers, and no others. */
import assert from "node:assert/strict";
import { globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { needsVault } from "../../whole-run/needs-vault.ts";

const test = join(import.meta.dirname, "..", "..");

describe("the need for Vault", () => {
  let folder: string;
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "inlay-needs-vault-"));
  });
  after(() => rmSync(folder, { recursive: true }));

  it("follows from the import of a helper that uses the server", () => {
    const server = relative(folder, join(test, "control-plane", "vault.ts"));
    write("helper.ts", `import {\n  startVault,\n} from "${server}";`);
    assert.equal(needsVault(write("static.ts", 'import { one } from "./helper.ts";')), true);
    assert.equal(needsVault(write("dynamic.ts", 'const { one } = await import("./helper.ts");')), true);
    assert.equal(needsVault(write("again.ts", 'export { one } from "./static.ts";')), true);
  });

  it("does not follow from a name in a string, nor from circular imports", () => {
    assert.equal(needsVault(write("one.ts", 'import "./two.ts";\n// vault-program.ts')), false);
    write("two.ts", 'import "./three.ts";');
    write("three.ts", 'import "./two.ts";');
    assert.equal(needsVault(join(folder, "one.ts")), false);
  });

  it("applies to the tests of the server, and not to the setup that all files share", () => {
    const files = globSync("{unit,integration}/**/*.test.ts", { cwd: test });
    const needing = files.filter((file) => needsVault(join(test, file)));
    assert.ok(needing.includes("integration/vault-server.test.ts"));
    assert.ok(needing.length < files.length / 4, `${needing.length} of ${files.length} files`);
  });
});
