/**
 * The key with which rollouts detect that a value changed. It is created once, in the Secret that deploy/ ships without
 * data. It is kept, and only a user's command replaces it. The shipped permissions are enough.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { Problem, type Reason } from "../../src/apimachinery/problem.ts";
import type { DigestKey } from "../../src/rollout/digest/digest.ts";
import type { DigestKeys } from "../../src/rollout/digest/keys.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { type KeyClient, Keyring } from "../controller/keyring.ts";
import { foundIn, registerSecretBytes } from "../controller/leak-detector.ts";
import { applyFile } from "../controller/manifests.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";

const root = join(import.meta.dirname, "..", "..");
const manifest = (name: string) => join(root, "deploy", "manifests", name);
const SYSTEM = "/api/v1/namespaces/inlay-system/secrets";
const SECRET = `${SYSTEM}/inlay-digest-key`;
const ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/inlay-system";

describe("the digest key of the installation", function () {
  this.timeout("1m");
  let api: Api;
  let ring: Keyring;

  const drop = () => api.remove(SECRET);
  const data = async (): Promise<Record<string, string>> => (await api.get(SECRET)).data ?? {};
  const text = ({ bytes }: DigestKey) => Buffer.from(bytes.reveal()).toString("base64");

  /** Returns the primary key, which the leak detector searches for from now on. */
  async function primaryOf(keys: DigestKeys): Promise<DigestKey> {
    const key = await keys.primary();
    registerSecretBytes(key.bytes.reveal());
    for (const shown of [keys, key]) {
      assert.deepEqual(foundIn(inspect(shown, { depth: null, showHidden: true }) + JSON.stringify(shown)), []);
    }
    return key;
  }

  /** Returns the problem why there is no key. */
  async function problemOf(keys: DigestKeys, reason: Reason): Promise<Problem> {
    const problem = await keys.primary().then(
      () => assert.fail("there is a key"),
      (error: unknown) => error,
    );
    assert.ok(problem instanceof Problem, inspect(problem));
    assert.equal(problem.reason, reason, problem.message);
    assert.deepEqual(foundIn(inspect(problem)), []);
    return problem;
  }

  before(async () => {
    // The shared controller would keep the key that it has read.
    await stopSharedController();
    api = new Api(controlPlane());
    ring = await Keyring.open();
  });
  beforeEach(async () => {
    await drop();
    await applyFile(api, manifest("36-digest-key.yaml"));
  });
  after(async () => {
    for await (const text of auditLog().texts()) assert.deepEqual(foundIn(text), []);
    await ring.close();
  });

  it("is created by the first replica that needs it, and stays the same over restarts, without another write", async () => {
    assert.deepEqual(await data(), {});
    const key = await primaryOf(ring.start());
    assert.deepEqual(await data(), { primary: Buffer.from(key.id).toString("base64"), [key.id]: text(key) });
    assert.equal(key.bytes.reveal().length, 32);
    const { metadata } = await api.get(SECRET);
    assert.ok(metadata.managedFields.some(({ manager }: AnyObject) => manager === "inlay"));
    const again = await primaryOf(ring.start());
    assert.deepEqual([again.id, text(again)], [key.id, text(key)]);
    assert.equal((await api.get(SECRET)).metadata.resourceVersion, metadata.resourceVersion);
  });

  it("is one key, even if two replicas find none at the same time and both create one", async () => {
    const mark = await auditLog().mark();
    const found: (() => void)[] = [];
    /** Continues when both replicas have seen that there is no key. */
    const meet = () =>
      new Promise<void>((resolve) => {
        found.push(resolve);
        if (found.length >= 2) for (const each of found) each();
      });
    const client: KeyClient = {
      get: async (...request) => {
        const answer = await ring.client.get<never>(...request);
        await meet();
        return answer;
      },
      mergePatch: (...request) => ring.client.mergePatch(...request),
    };
    const [one, other] = await Promise.all([ring.start(client), ring.start(client)].map(primaryOf));
    assert.ok(one !== undefined && other !== undefined);
    assert.deepEqual([one.id, text(one)], [other.id, text(other)]);
    assert.deepEqual(Object.keys(await data()).sort(), [one.id, "primary"].sort());
    const patches = async () =>
      (await auditLog().since(mark)).filter(({ verb, name }) => verb === "patch" && name === "inlay-digest-key");
    await eventually(async () => assert.deepEqual((await patches()).map(({ code }) => code).sort(), [200, 409]));
  });

  for (const [how, flags, otherFlags] of [
    ["client-side", [], ["--server-side"]],
    ["server-side", ["--server-side"], []],
  ] as const) {
    it(`stays when the manifests are applied again, ${how} as before or the other way`, async () => {
      const apply = (...more: string[]) =>
        controlPlane().kubectl("apply", ...more, `--filename=${manifest("36-digest-key.yaml")}`);
      await drop();
      await apply(...flags);
      const key = await primaryOf(ring.start());
      const filled = await data();
      for (const again of [flags, otherFlags, flags]) {
        await apply(...again);
        assert.deepEqual(await data(), filled);
      }
      assert.equal(text(await primaryOf(ring.start())), text(key));
    });
  }

  it("is replaced by the commands of docs/tasks/rotate-the-digest-key.md, with the old key beside it", async () => {
    const running = ring.start();
    const old = await primaryOf(running);
    const page = await readFile(join(root, "docs", "tasks", "rotate-the-digest-key.md"), "utf8");
    const [rotate = "", prune = ""] = page.match(/^kubectl patch secret inlay-digest-key .*$/gm) ?? [];
    await paste(rotate);
    assert.equal((await primaryOf(running)).id, old.id);
    assert.deepEqual(await data(), { [old.id]: text(old) });
    const next = ring.start();
    const key = await primaryOf(next);
    assert.notEqual(key.id, old.id);
    assert.notEqual(text(key), text(old));
    assert.equal(text((await next.byId(old.id)) ?? assert.fail()), text(old));
    assert.equal(text((await next.byId(key.id)) ?? assert.fail()), text(key));
    await paste(prune.replace("2026-11-21-0a1b2c3d", old.id));
    const later = ring.start();
    assert.equal(text(await primaryOf(later)), text(key));
    assert.equal(await later.byId(old.id), undefined);
  });

  it("that is deleted is reported with the command that fixes it, kept by the running controller, and replaced afterwards", async () => {
    const running = ring.start();
    const old = await primaryOf(running);
    await drop();
    assert.equal(text(await primaryOf(running)), text(old));
    const keys = ring.start();
    const { message, retryPolicy: healing } = await problemOf(keys, "NoDigestKey");
    assert.match(message, /inlay-system\/inlay-digest-key/);
    assert.equal(healing, "Backoff");
    await paste(commandsIn(message));
    const key = await eventually(() => primaryOf(keys));
    assert.notEqual(text(key), text(old));
    assert.equal(await keys.byId(old.id), undefined);
  });

  it("that is in use according to the Secret and missing is reported too, and replaced only after the command", async () => {
    await api.merge(SECRET, { data: { primary: Buffer.from("lost").toString("base64") } });
    const keys = ring.start();
    const { message } = await problemOf(keys, "NoDigestKey");
    assert.deepEqual(Object.keys(await data()), ["primary"]);
    await paste(commandsIn(message));
    await eventually(() => primaryOf(keys));
  });

  it("that can't be written, because the Secret is immutable, is reported", async () => {
    await api.merge(SECRET, { immutable: true });
    const { message } = await problemOf(ring.start(), "NoDigestKey");
    assert.match(message, /patch Secret inlay-system\/inlay-digest-key \(422 Invalid\)/);
  });

  describe("without a permission", () => {
    const bindings = `${ROLES}/rolebindings`;

    afterEach(async () => {
      for (const plural of ["roles", "rolebindings"]) await api.remove(`${ROLES}/${plural}/inlay-digest-key`);
      await applyFile(api, manifest("10-controller-role.yaml"));
      await eventually(() => primaryOf(ring.start()));
    });

    it("is reported with the commands that grant it, and only with these", async () => {
      await api.delete(`${bindings}/inlay-controller`);
      const message = await eventually(async () => (await problemOf(ring.start(), "Forbidden")).message);
      assert.match(message, /may not (get|patch) secrets\/inlay-digest-key in namespace inlay-system/);
      await paste(commandsIn(message));
      const { rules } = await api.get(`${ROLES}/roles/inlay-digest-key`);
      assert.deepEqual(rules, [
        { apiGroups: [""], resources: ["secrets"], resourceNames: ["inlay-digest-key"], verbs: ["get", "patch"] },
      ]);
      await eventually(() => primaryOf(ring.start()));
    });
  });
});
