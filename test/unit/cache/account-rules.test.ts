/** The cost of cached answers about permissions. */
import assert from "node:assert/strict";
import { AccountRules } from "../../../src/cache/account-rules.ts";
import { serviceAccountIdentity } from "../../../src/kube/identity.ts";
import { fakeClock } from "../clock.ts";
import { fakeClient } from "../fakes.ts";

const identity = serviceAccountIdentity("registry", "inlay");

describe("reviews of permissions", () => {
  it("of many namespaces in a minute do not slow down with the cached answers", async () => {
    const client = fakeClient({ rules: async () => ({ incomplete: false, resourceRules: [] }) });
    const reviews = new AccountRules(client);
    const start = performance.now();
    for (let n = 0; n < 20_000; n++) await reviews.of({ identity, namespace: `team-${n}` });
    const took = performance.now() - start;
    assert.ok(took < 1_500, `it took ${took} ms`);
  });

  describe("of accounts with many rules", () => {
    const clock = fakeClock();
    const place = { identity, namespace: "registry" };
    const names = (count: number) => ({
      incomplete: false,
      resourceRules: [
        {
          verbs: ["get"],
          apiGroups: [""],
          resources: ["secrets"],
          resourceNames: Array.from({ length: count }, (_, n) => `s${n}`),
        },
      ],
    });
    /** Reviews whose answers have so many names and take so long. */
    function reviewed(count: number, ms: number) {
      let asked = 0;
      const client = fakeClient({
        rules: async () => {
          asked++;
          if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
          return names(count);
        },
      });
      const reviews = new AccountRules(client);
      const refresh = async () => {
        const answer = reviews.refresh(place);
        await clock.pass(ms);
        return answer;
      };
      return { reviews, refresh, asked: () => asked };
    }

    it("count as incomplete, and are not repeated for minutes, if the answer is too large", async () => {
      const { reviews, refresh, asked } = reviewed(60_000, 0);
      assert.deepEqual(await reviews.of(place), { incomplete: true, resourceRules: [] });
      for (let second = 0; second < 170; second++) {
        await refresh();
        reviews.expire(place, 0);
        await clock.pass(1_000);
      }
      assert.equal(asked(), 1);
      await clock.pass(20_000);
      await refresh();
      assert.equal(asked(), 2);
    });

    it("are repeated seldom if they are slow, and at once otherwise", async () => {
      for (const [ms, least, most] of [
        [2_000, 5, 11],
        [0, 100, 100],
      ] as const) {
        const { refresh, asked } = reviewed(10, ms);
        for (let second = 0; second < 100; second++) {
          await refresh();
          await clock.pass(1_000 - Math.min(ms, 1_000));
        }
        assert.ok(asked() >= least && asked() <= most, `${asked()} reviews that take ${ms} ms`);
      }
    });
  });
});
