/** Runs `inlay migrate` on examples from the other tools' documentation. The API server accepts what it prints. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parse, parseAllDocuments } from "yaml";
import { TOOL_NAMES } from "../../src/cli/migrate.ts";
import type { AnyObject } from "../controller/api.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const root = join(import.meta.dirname, "..", "..");
const folder = join("test", "e2e", "migrate");
const input = (tool: string) => join(folder, tool, "input.yaml");

async function migrate(...args: string[]): Promise<{ stdout: string; stderr: string; code: number }> {
  const child = spawn(process.execPath, [join("src", "main.ts"), "migrate", ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { stdout, stderr, code };
}

/** Compares with a file, or writes it if INLAY_TEST_UPDATE is set. */
function assertEqualsFile(printed: string, file: string): void {
  if (process.env["INLAY_TEST_UPDATE"]) writeFileSync(join(root, file), printed);
  assert.equal(printed, readFileSync(join(root, file), "utf8"));
}

const PLURALS: Record<string, string> = {
  SecretBinding: "secretbindings",
  SecretGrant: "secretgrants",
  VaultConnection: "vaultconnections",
};

/** Creates the object in the namespace of the test, as a dry run. */
async function accept(team: TestNamespace, object: AnyObject): Promise<void> {
  const isComposition = object.kind === "BindingComposition";
  const plural = PLURALS[object.kind];
  const path = isComposition
    ? "/apis/inlay.dev/v1alpha1/bindingcompositions"
    : team.path(object.apiVersion, plural ?? "");
  const namespace = isComposition ? {} : { namespace: team.namespace };
  await team.api.dryRun.create(path, { ...object, metadata: { ...object.metadata, ...namespace } });
}

describe("inlay migrate", function () {
  this.timeout("1m");
  let team: TestNamespace;
  before(async () => {
    team = await createNamespace({ controller: false });
  });

  for (const tool of TOOL_NAMES)
    it(`${tool} prints objects that the API server accepts, and reports each line that it can't convert`, async () => {
      const [yaml, json] = await Promise.all([
        migrate(tool, "-f", input(tool)),
        migrate(tool, "-f", input(tool), "-o", "json"),
      ]);
      assertEqualsFile(yaml.stdout, join(folder, tool, "expected.yaml"));
      assertEqualsFile(yaml.stderr, join(folder, tool, "expected.txt"));
      assert.equal(yaml.code, 1);
      const { converted, lost } = parse(json.stdout);
      // Without an object, there are only comments.
      const objects = parseAllDocuments(yaml.stdout)
        .map((each) => each.toJS())
        .filter((each) => each !== null);
      assert.deepEqual(
        converted.map(({ object }: AnyObject) => object),
        objects,
      );
      assert.deepEqual(
        lost.map(({ file, line, message }: AnyObject) => `${file}:${line}: ${message}`),
        yaml.stderr.trimEnd().split("\n"),
      );
      for (const object of objects) await accept(team, object);
    });

  it("finds the objects of all tools in a folder, and fails without any", async () => {
    const [all, none] = await Promise.all([
      migrate("-f", folder, "-o", "json"),
      migrate("-f", join(folder, "..", "..", "..", "samples", "shared-secret")),
    ]);
    const { converted, remarks } = parse(all.stdout);
    const of = (tool: string) => converted.filter(({ from }: AnyObject) => from[0].startsWith(join(folder, tool)));
    const found = TOOL_NAMES.filter((tool) => of(tool).length > 0);
    assert.deepEqual(found.concat(remarks.length > 0 ? "reloader" : []), TOOL_NAMES);
    assert.match(none.stderr, /the files have no objects of kyverno, vso/);
    assert.deepEqual([all.code, none.code], [1, 1]);
  });

  it("succeeds if all is converted, and fails without objects of the tool", async () => {
    const [all, none] = await Promise.all([
      migrate("reflector", "-f", join(folder, "whole.yaml"), "-o", "table"),
      migrate("kyverno", "-f", join(folder, "whole.yaml")),
    ]);
    assert.deepEqual([all.stderr, all.code], ["", 0]);
    assert.match(all.stdout, /SecretBinding certs\/wildcard/);
    assert.match(none.stderr, /^1 other object .*\n.*the files have no Kyverno policies/s);
    assert.deepEqual([none.stdout, none.code], ["", 1]);
  });
});
