/**
 * Cost of writing an unprotected Secret in a namespace whose other Secrets are protected by many bindings. Each write evaluates all
 * protecting bindings, since an API server can't look up those that name the Secret.
 */
import assert from "node:assert/strict";
import { eventually } from "../test/controller/eventually.ts";
import { atOnce } from "./cluster.ts";
import type { Rig } from "./rig.ts";
import { median, ms, quantile } from "./table.ts";
import { bindingPath, dropBindings, makeNamespace, makeSecrets, secretPath } from "./world.ts";

const ALONE = "unprotected";
const BESIDE = "protected";
const WIDTH = 50;
/** A user who is not an admin: protection does not apply to admins. */
const USER = "user";
const KIND_IS_KNOWN_WITHIN = 60_000;

export async function measureProtection(rig: Rig): Promise<void> {
  for (const namespace of [ALONE, BESIDE]) {
    await makeNamespace(rig.client, namespace);
    await makeSecrets(rig.client, () => namespace, 1);
  }
  await rig.cluster.kubectl(
    ...["create", "rolebinding", USER, "--clusterrole=edit", `--user=${USER}`, `--namespace=${BESIDE}`],
  );
  const most = rig.of(1_000);
  await makeBindings(rig, 0, most, false);
  await compare(rig, `${most} beside it that don't protect`);
  await dropBindings(rig.client);
  let made = 0;
  for (const count of [rig.of(10), rig.of(100), most]) {
    await makeBindings(rig, made, count, true);
    made = Math.max(made, count);
    await untilProtected(rig, made - 1);
    await compare(rig, `${made} beside it that protect`);
  }
  await dropBindings(rig.client);
}

async function makeBindings({ client }: Rig, from: number, to: number, protects: boolean): Promise<void> {
  await atOnce(Math.max(0, to - from), WIDTH, (i) => {
    const name = `other-${from + i}`;
    return client.send("POST", bindingPath(BESIDE), {
      apiVersion: "inlay.dev/v1alpha1",
      kind: "SecretBinding",
      metadata: { name, ...(protects && { labels: { "inlay.dev/protects": "true" } }) },
      spec: {
        sources: [{ secret: { name }, ...(protects && { protect: { writers: [{ kind: "User", name: "rotator" }] } }) }],
        targets: [{ apiVersion: "v1", kind: "ConfigMap", name: "target", fields: [{ path: "data.a", template: "a" }] }],
      },
    });
  });
}

/** Waits until the API server applies the last created binding. */
async function untilProtected({ client, cluster }: Rig, last: number): Promise<void> {
  const name = `other-${last}`;
  await client.send("POST", secretPath(BESIDE), { metadata: { name } });
  const change = ["label", "secret", name, "a=b", "--dry-run=server", `--namespace=${BESIDE}`, `--as=${USER}`];
  await eventually(() => assert.rejects(cluster.kubectl(...change), /protects it/), KIND_IS_KNOWN_WITHIN);
}

/** Both cases take turns, so that other load on the machine affects both. */
async function compare(rig: Rig, what: string): Promise<void> {
  const took: Record<typeof ALONE | typeof BESIDE, number[]> = { [ALONE]: [], [BESIDE]: [] };
  for (let i = 0; i < rig.of(300); i++) {
    for (const namespace of [ALONE, BESIDE] as const) {
      const from = performance.now();
      await rig.client.merge(secretPath(namespace, "s-0"), { stringData: { accessKeyID: `${what} ${i}` } });
      took[namespace].push(performance.now() - from);
    }
  }
  rig.table.row(`write of a Secret, ${what}, median`, ms(median(took[ALONE])), ms(median(took[BESIDE])));
  rig.table.row("  p99", ms(quantile(took[ALONE], 0.99)), ms(quantile(took[BESIDE], 0.99)));
}
