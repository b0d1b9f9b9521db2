/** Many namespaces whose reconciles each need seconds of the processor. */
import { mapConcurrent } from "../../../src/workqueue/map-concurrent.ts";
import { hostileBinding, hostileData, WAYS } from "../hostile.ts";
import { createNamespace, type TestNamespace } from "../test-namespace.ts";
import { type Attack, sized } from "./attack.ts";
import { clear } from "./clear.ts";
import { READ } from "./permissions.ts";

const NAMESPACES = 20;
const BINDINGS = 10;
/** The bindings of hostile.ts with many targets and documents that are slow to process. */
const SLOW = [WAYS - 3, WAYS - 2];

let others: TestNamespace[] = [];

export const slowReconciles: Attack = {
  tenant: `${NAMESPACES} namespaces whose bindings are slow to reconcile`,
  async launch(tenant, scale) {
    const names = Array.from({ length: sized(NAMESPACES, scale) }, (_, n) => n);
    const teams = await mapConcurrent(names, async (n) =>
      n === 0 ? tenant : await createNamespace({ account: false, rules: [], controller: false }),
    );
    others = teams.filter((team) => team !== tenant);
    await mapConcurrent(teams, async (team) => {
      await team.createAccount();
      await team.grant(READ, { role: "reader" });
      await team.secret("hostile", hostileData("x"));
      for (const n of Array.from({ length: 32 }, (_, at) => at)) await team.harbor(`many-${n}`);
      for (let n = 0; n < BINDINGS; n++) {
        const { spec } = hostileBinding(WAYS * n + (SLOW[n % SLOW.length] as number));
        await team.bind(`slow-${n}`, spec);
      }
    });
  },
  end: async () => {
    await mapConcurrent(others, clear);
  },
};
