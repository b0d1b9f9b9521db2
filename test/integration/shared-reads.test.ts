/**
 * Shows that bindings of one account share the reads of their sources, that a change which their watch shows needs no read, and that no
 * other account gets data of these reads.
 */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import type { AuditedRequest } from "../controller/audit.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { newNeighbours } from "../controller/neighbours.ts";
import { requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { accessKeySpec, createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const BINDINGS = 200;
/** The time that so many bindings need on a busy machine. */
const WITHIN_MS = 60_000;
/** A read is shared for a second: there are far fewer reads than bindings, even if a rotation takes half a minute. */
const MAX_READS = 40;

const names = Array.from({ length: BINDINGS }, (_, n) => `copy-${n}`);

const spec = (name: string, secret = "bucket") => ({
  sources: [{ secret: { name: secret } }],
  targets: [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      name,
      fields: [{ path: "data.key", from: { source: secret, key: "key" } }],
    },
  ],
});

const isSecretRead = ({ verb, resource }: AuditedRequest) => verb === "get" && resource === "secrets";

async function untilCopied(team: TestNamespace, value: string): Promise<void> {
  await eventually(async () => {
    const { items } = await team.api.get(team.path("v1", "configmaps"));
    const copied = items.filter(({ data }: AnyObject) => data?.key === value);
    assert.equal(copied.length, BINDINGS);
  }, WITHIN_MS);
}

describe(`${BINDINGS} bindings of one account and one Secret`, function () {
  this.timeout("3m");

  it("need a few reads for a rotation, and all targets have the new value", async () => {
    const team = await createNamespace();
    await team.grant([{ apiGroups: [""], resources: ["configmaps"], verbs: ["patch"] }], { role: "patch" });
    const former = secretText("former");
    await team.secret("bucket", { key: former });
    await Promise.all(names.map((name) => team.api.create(team.path("v1", "configmaps"), { metadata: { name } })));
    await Promise.all(names.map((name) => team.bind(name, spec(name))));
    await untilCopied(team, former);
    await team.controller.idle(WITHIN_MS);

    const mark = await auditLog().mark();
    const value = secretText("rotated");
    await team.secret("bucket", { key: value });
    await untilCopied(team, value);
    const { metadata } = await team.api.get(`${team.path("v1", "secrets")}/bucket`);
    const requests = await requestsFor(team, mark);
    const reads = requests.filter(isSecretRead);
    assert.ok(reads.length <= MAX_READS, `${reads.length} reads`);
    const versions = reads.map(({ uri }) => new URL(uri, "https://x").searchParams.get("resourceVersion"));
    assert.deepEqual(
      versions.filter((version) => version !== metadata.resourceVersion),
      [],
    );
    assert.equal(requests.filter(({ verb }) => verb === "patch").length, BINDINGS);
  });
});

describe(`${BINDINGS} Secrets that change at once`, function () {
  this.timeout("3m");
  const rotate = async (team: TestNamespace, more: Record<string, string> = {}) => {
    const values = new Map(names.map((name) => [name, secretText(name)]));
    await Promise.all(names.map((name) => team.secret(name, { key: values.get(name) as string, ...more })));
    return values;
  };
  const untilAll = (team: TestNamespace, values: ReadonlyMap<string, string>) =>
    eventually(async () => {
      const { items } = await team.api.get(team.path("v1", "configmaps"));
      const copied = items.filter(
        ({ metadata, data }: AnyObject) => values.has(metadata.name) && data?.key === values.get(metadata.name),
      );
      assert.equal(copied.length, BINDINGS);
    }, WITHIN_MS);

  it("need few reads, because the watch of the account shows their values, unless they are large", async () => {
    const team = await createNamespace();
    await team.grant([{ apiGroups: [""], resources: ["configmaps"], verbs: ["patch"] }], { role: "patch" });
    const former = await rotate(team);
    await Promise.all(names.map((name) => team.api.create(team.path("v1", "configmaps"), { metadata: { name } })));
    await Promise.all(names.map((name) => team.bind(name, spec(name, name))));
    await untilAll(team, former);
    await team.controller.idle(WITHIN_MS);
    const readsDuring = async (more: Record<string, string> = {}) => {
      const mark = await auditLog().mark();
      await untilAll(team, await rotate(team, more));
      return (await requestsFor(team, mark)).filter(isSecretRead).length;
    };
    const reads = await readsDuring();
    assert.ok(reads < BINDINGS / 2, `${reads} reads`);
    assert.equal(await readsDuring({ other: "x".repeat(100 * 1024) }), BINDINGS);
  });

  it("are not copied once the account may only watch them", async () => {
    const team = await createNamespace();
    await team.grant([{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch", "patch"] }], {
      role: "targets",
    });
    await team.grant([{ apiGroups: [""], resources: ["secrets"], verbs: ["list", "watch"] }], { role: "watch" });
    const former = await rotate(team);
    await Promise.all(names.map((name) => team.api.create(team.path("v1", "configmaps"), { metadata: { name } })));
    await Promise.all(names.map((name) => team.bind(name, spec(name, name))));
    await untilAll(team, former);
    await team.controller.idle(WITHIN_MS);
    await team.revoke();
    const mark = await auditLog().mark();
    await rotate(team);
    await eventually(async () => {
      const denied = (await requestsFor(team, mark)).filter(isSecretRead);
      assert.deepEqual([...new Set(denied.map(({ code }) => code))], [403]);
      assert.equal(new Set(denied.map(({ name }) => name)).size, BINDINGS);
    }, WITHIN_MS);
    await untilAll(team, former);
    assert.deepEqual(
      (await requestsFor(team, mark)).filter(({ verb }) => verb === "patch").map(({ uri }) => uri),
      [],
    );
  });
});

describe("a binding of another account", () => {
  it("that may watch the Secret and not get it receives no value of the reads for others", async () => {
    const { both, value } = await newNeighbours({ rights: false });
    const { owner, reader } = both;
    const mayWatch = [{ apiGroups: [""], resources: ["secrets"], verbs: ["list", "watch"] }];
    await reader.grant(mayWatch, { role: "watch", namespace: owner.namespace });
    await both.grant();
    await owner.harbor();
    await owner.bind("harbor-s3", accessKeySpec());
    await eventually(async () => assert.equal((await owner.s3()).accesskey, value));
    const mark = await auditLog().mark();
    await reader.bind("harbor-s3", both.spec());
    await reader.until("harbor-s3", "Forbidden");
    for (let turn = 0; turn < 5; turn++) {
      const rotated = await both.rotate();
      await eventually(async () => assert.equal((await owner.s3()).accesskey, rotated));
    }
    await reader.until("harbor-s3", "Forbidden");
    assert.equal((await reader.s3()).accesskey, undefined);
    const reads = (await requestsFor(reader, mark)).filter(isSecretRead);
    assert.deepEqual([...new Set(reads.map(({ code }) => code))], [403]);
  });
});
