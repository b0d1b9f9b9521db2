/** Makes plausible mistakes of new users, and checks that each is reported, and that the message says what is wrong and what to do. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, mayWrite, objectPath } from "../controller/kinds.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { createNamespace, type TestNamespace, usualRules } from "../controller/test-namespace.ts";
import { COMMANDS } from "./mistakes/commands.ts";
import { FIELDS } from "./mistakes/fields.ts";
import { harborName, type Mistake, type Place, targetCount } from "./mistakes/mistake.ts";
import { OBJECTS, STRICT } from "./mistakes/objects.ts";
import { REFUSED, REFUSED_OBJECTS, type RefusedObject } from "./mistakes/schema.ts";

const REPORTED: readonly Mistake[] = [...FIELDS, ...OBJECTS];
const main = join(import.meta.dirname, "..", "..", "src", "main.ts");
const restartsDeployments = {
  apiGroups: ["apps"],
  resources: ["deployments"],
  verbs: ["get", "list", "watch", "patch"],
};
const MANAGER = "kubectl-client-side-apply";

interface Ran {
  output: string;
  code: number;
}

/** Runs a program until it ends, or until it has said something. */
async function run(program: string, args: readonly string[], stdin = "", until?: RegExp): Promise<Ran> {
  const child = spawn(program, args, { env: { ...process.env, KUBECONFIG: controlPlane().kubeconfigFile } });
  if (until !== undefined) {
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk) => {
        said += chunk;
        if (until.test(said)) child.kill();
      });
  }
  child.stdin.on("error", () => {}).end(stdin);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { output: stdout + stderr, code };
}

/** Prints a row of a table if INLAY_TEST_MESSAGES is set, for a reading by people. */
function print(mistake: string, message: string): void {
  if (process.env["INLAY_TEST_MESSAGES"]) console.log(`| ${mistake} | ${message.trim().replaceAll("\n", "<br>")} |`);
}

async function prepare(team: TestNamespace): Promise<void> {
  await team.secret("bucket", {
    accessKeyID: secretText("access"),
    host: secretText("host"),
    port: "9000",
    "tls.crt": secretText("crt"),
    binary: Uint8Array.of(0xc3, 0x28, 0xff),
  });
  await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "settings" }, data: { host: "x" } });
  await Promise.all(Array.from({ length: targetCount() }, (_, at) => team.harbor(harborName(at + 1))));
}

describe("a mistake of a new user:", function () {
  this.timeout("3m");
  let shop: TestNamespace;
  let places: Record<Place, TestNamespace>;
  const nameOf = (mistake: Mistake) => `mistake-${REPORTED.indexOf(mistake)}`;

  before(async () => {
    shop = await createNamespace({ rules: [...usualRules, mayWrite(STRICT), restartsDeployments] });
    places = { shop, bare: await createNamespace({ account: false }), poor: await createNamespace({ rules: [] }) };
    await shop.createAccount("robot");
    await prepare(shop);
    await installKind(shop.api, STRICT);
    await createObject(shop.api, STRICT, "refused", {}, shop.namespace);
    const owned = { apiVersion: apiVersionOf(STRICT), kind: STRICT.kind, metadata: { name: "owned" } };
    await shop.api.apply(
      objectPath(STRICT, shop.namespace, "owned"),
      { ...owned, spec: { user: "app-1", fixed: "a" } },
      MANAGER,
    );
    await Promise.all(REPORTED.map((each) => places[each.where ?? "shop"].bind(nameOf(each), each.spec)));
  });

  for (const each of REPORTED)
    it(`${each.mistake} is reported`, async () => {
      const team = places[each.where ?? "shop"];
      const type = each.condition ?? "Ready";
      const condition: AnyObject = await eventually(async () => {
        const { status } = await team.binding(nameOf(each));
        const found = status?.conditions?.find((condition: AnyObject) => condition.type === type);
        assert.equal(found?.reason, each.reason, JSON.stringify(status));
        // If many bindings are denied at the same time, a later retry has all commands.
        assert.match(found.message, each.says);
        return found;
      });
      print(each.mistake, `${condition.reason}: ${condition.message}`);
    });

  const bindings = REFUSED.map(({ mistake, spec, says }): RefusedObject => {
    return { mistake, says, object: { apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", spec } };
  });
  for (const { mistake, object, says } of [...bindings, ...REFUSED_OBJECTS])
    it(`${mistake} is refused`, async () => {
      const given = JSON.stringify({ ...object, metadata: { name: "refused" } });
      const args = ["apply", "-n", shop.namespace, "-f", "-"];
      const { output, code } = await run(controlPlane().kubectlProgram, args, given);
      print(mistake, output);
      assert.equal(code, 1, output);
      assert.match(output, says);
      assert.doesNotMatch(output, /<nil>: Invalid value: ""|must validate one and only one schema/);
    });

  describe("on the command line", () => {
    let folder: string;
    let taken: Server;

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), "inlay-mistakes-"));
      taken = createServer().listen(0);
      await once(taken, "listening");
      const away = {
        apiVersion: "v1",
        kind: "Config",
        "current-context": "away",
        contexts: [{ name: "away", context: { cluster: "away", user: "away" } }],
        clusters: [{ name: "away", cluster: { server: "https://127.0.0.1:1" } }],
        users: [{ name: "away", user: {} }],
      };
      await writeFile(join(folder, "away"), JSON.stringify(away));
      await writeFile(join(folder, "broken.yaml"), "apiVersion: v1\n  kind: [\n");
      await writeFile(join(folder, "config.yaml"), "reloadr: {}\n");
      const given = await readFile(join(import.meta.dirname, "render", "composition.yaml"), "utf8");
      await writeFile(
        join(folder, "composition.yaml"),
        given.replace("- fromFieldPath", "- type: FromCompositeField\n          fromFieldPath"),
      );
    });
    after(async () => {
      taken.close();
      await rm(folder, { recursive: true });
    });

    for (const { mistake, args, says, isRetried = false } of COMMANDS)
      it(`${mistake} is reported`, async () => {
        const values: Record<string, string> = {
          KUBECONFIG: controlPlane().kubeconfigFile,
          SHOP: shop.namespace,
          PORT: `${(taken.address() as { port: number }).port}`,
          FOLDER: folder,
        };
        const filled = (given: string) =>
          given.replaceAll(/KUBECONFIG|SHOP|PORT|FOLDER/g, (name) => values[name] ?? name);
        const expected = new RegExp(filled(says.source), says.flags);
        const all = [main, ...args.map(filled)];
        const { output, code } = await run(process.execPath, all, "", isRetried ? expected : undefined);
        print(mistake, output);
        if (!isRetried) assert.notEqual(code, 0, output);
        assert.match(output, expected);
        assert.doesNotMatch(output, /^\s+at .*:\d+:\d+\)?$/m);
        assert.deepEqual(foundIn(output), []);
      });
  });
});
