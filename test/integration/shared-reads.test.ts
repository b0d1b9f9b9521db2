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

const spec = (name: string) => ({
  sources: [{ secret: { name: "bucket" } }],
  targets: [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      name,
      fields: [{ path: "data.key", from: { source: "bucket", key: "key" } }],
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

describe("a changed Secret that the watch of an account shows", () => {
  const rotate = async (team: TestNamespace) => {
    const accessKeyID = secretText("access");
    await team.secret("bucket", { accessKeyID });
    return accessKeyID;
  };
  const untilCopied = (team: TestNamespace, value: string) =>
    eventually(async () => assert.equal((await team.s3()).accesskey, value));

  it("is not read again", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    await team.controller.idle();
    const mark = await auditLog().mark();
    for (let turn = 0; turn < 5; turn++) await untilCopied(team, await rotate(team));
    assert.deepEqual((await requestsFor(team, mark)).filter(isSecretRead), []);
  });

  it("is read if it is large", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    await team.controller.idle();
    const mark = await auditLog().mark();
    await team.secret("bucket", { other: "x".repeat(100 * 1024) });
    await untilCopied(team, await rotate(team));
    assert.ok((await requestsFor(team, mark)).some(isSecretRead));
  });

  it("is not used once the account may only watch it", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const rules = (verbs: string[]) => [
      { apiGroups: [""], resources: ["secrets"], verbs },
      { apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs: ["get", "list", "watch", "patch"] },
    ];
    await team.grant(rules(["list", "watch"]), { role: "watch" });
    await team.revoke();
    // For a second, Inlay may still use what the API server said before.
    await eventually(async () => {
      await rotate(team);
      await team.until("harbor-s3", "Forbidden", 1_000);
    });
    const before = (await team.s3()).accesskey;
    const mark = await auditLog().mark();
    await rotate(team);
    await eventually(async () => {
      const reads = (await requestsFor(team, mark)).filter(isSecretRead);
      assert.deepEqual([...new Set(reads.map(({ code }) => code))], [403]);
    });
    await team.controller.idle();
    assert.equal((await team.s3()).accesskey, before);
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
