/**
 * Cost of the mark with which Inlay names the binding in each request as an account. The floor is the same request without the mark. Both
 * take turns, as the controller's own account, which RBAC must permit to set the mark.
 */
import { Client } from "./cluster.ts";
import { Process } from "./processes.ts";
import type { Rig } from "./rig.ts";
import { median, ms, quantile } from "./table.ts";
import { makeNamespace, makeSecrets, secretPath } from "./world.ts";

const NAMESPACE = "marked";
const ACCOUNT = `system:serviceaccount:${NAMESPACE}:inlay`;
const MARK = `${NAMESPACE}/harbor/0e4d1f0c-8c5a-4f0e-9a43-1d6a2f8f6f5b`;
/** Requests of one kind in a row. */
const BATCH = 50;

export async function measureMarks(rig: Rig): Promise<void> {
  const { client, cluster, table } = rig;
  await makeNamespace(client, NAMESPACE);
  await makeSecrets(client, () => NAMESPACE, 1);
  await cluster.kubectl(
    ...["create", "rolebinding", "editor", "--clusterrole=edit", `--namespace=${NAMESPACE}`],
    `--serviceaccount=${NAMESPACE}:inlay`,
  );
  const { status } = await client.send(
    "POST",
    "/api/v1/namespaces/inlay-system/serviceaccounts/inlay-controller/token",
    { spec: { audiences: [], expirationSeconds: 3_600 } },
  );
  const as = { "impersonate-user": ACCOUNT };
  const clients = {
    without: new Client(cluster, status.token, as),
    with: new Client(cluster, status.token, { ...as, "impersonate-extra-inlay.dev%2fbinding": MARK }),
  };
  const server = new Process(cluster.processes.get("kube-apiserver")?.pid);
  const kinds = {
    read: (by: Client) => by.send("GET", secretPath(NAMESPACE, "s-0")),
    write: (by: Client, i: number) => by.merge(secretPath(NAMESPACE, "s-0"), { stringData: { accessKeyID: `${i}` } }),
  };
  for (const [kind, send] of Object.entries(kinds)) {
    const took = { without: [] as number[], with: [] as number[] };
    const cpu = { without: 0, with: 0 };
    for (let i = 0; i < rig.of(2_000); i += BATCH) {
      for (const which of ["without", "with"] as const) {
        const before = await server.cpuSeconds();
        for (let n = 0; n < BATCH; n++) {
          const from = performance.now();
          await send(clients[which], 2 * i + n + (which === "with" ? BATCH : 0));
          took[which].push(performance.now() - from);
        }
        cpu[which] += 1_000 * ((await server.cpuSeconds()) - before);
      }
    }
    table.row(
      `${kind} as an account, without and with the mark, median`,
      ms(median(took.without)),
      ms(median(took.with)),
    );
    table.row("  p99", ms(quantile(took.without, 0.99)), ms(quantile(took.with, 0.99)));
    table.row(
      "  processor of the API server for each request",
      ms(cpu.without / took.without.length),
      ms(cpu.with / took.with.length),
    );
  }
  await Promise.all(Object.values(clients).map((each) => each.close()));
}
