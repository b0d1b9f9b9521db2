/** Where the consumers of a Secret are looked for, by the classes that bring it to pods. */
import assert from "node:assert/strict";
import type { ReflectorState } from "../../../../src/cache/reflector.ts";
import type { ListedObject } from "../../../../src/cache/watcher.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import { serviceAccountIdentity } from "../../../../src/kube/identity.ts";
import type { RolloutReferences, WorkloadLookup } from "../../../../src/rollout/discover/lookups.ts";
import { ProviderClasses } from "../../../../src/rollout/discover/provider-classes.ts";
import { finish } from "../../../../src/workqueue/cpu-scheduler.ts";
import { lookupOf, usesOfSource } from "../../objects.ts";
import { CONFIGMAPS } from "../../resources.ts";

const ACCOUNT = serviceAccountIdentity("registry", "inlay");
const CLASSES = { ...CONFIGMAPS, group: "secrets-store.csi.x-k8s.io", kind: "SecretProviderClass" };

const lookup = (step: number, kind: "Secret" | "ConfigMap", name = "bucket") =>
  lookupOf({ step, find: { by: "reference", kind, name, uses: usesOfSource(name) } });
const references = (...lookups: WorkloadLookup[]): RolloutReferences => ({
  steps: [],
  lookups,
  closed: [],
  problem: undefined,
});
const written = (name: string, secretName = "bucket", key = "token") => ({
  name,
  version: {
    uid: name,
    resourceVersion: "1",
    generation: 1,
    synced: [{ secret: secretName, keys: [key] }],
  },
});
/** Of which it is not known what it writes. */
const tooLarge = (name: string): ListedObject => {
  const { version } = written(name);
  return { name, version: { ...version, synced: [], isTooLarge: true } };
};

type Seen = ReflectorState & { members?: ListedObject[] };

function followed(from: RolloutReferences, seen: Seen, isServed = true) {
  let asked = 0;
  const discovery = {
    byKind: async () => {
      asked++;
      return isServed ? CLASSES : undefined;
    },
  };
  const informers = { list: () => ({ members: [], ...seen }) };
  const classes = new ProviderClasses(discovery, informers);
  const follow = () => classes.followed("registry/b", ACCOUNT, from, async (work) => finish(work));
  return { follow, asked: () => asked };
}
const found = ({ lookups }: RolloutReferences) =>
  lookups.map(({ step, find }) =>
    find.by === "reference" ? `${step} ${find.kind} ${find.name} ${find.keys ?? ""}` : "",
  );

describe("the consumers of a Secret", () => {
  it("include those that mount a class which writes the Secret, in the same step, for its keys", async () => {
    const members = [written("store"), written("elsewhere", "another"), written("more", "bucket", "id")];
    const from = references(lookup(0, "Secret"), lookup(1, "ConfigMap"), lookup(1, "Secret", "another"));
    const { lookups, classes } = await followed(from, { phase: "synced", members }).follow();
    assert.deepEqual(found({ ...from, lookups }), [
      "0 Secret bucket ",
      "0 SecretProviderClass store token",
      "0 SecretProviderClass more id",
      "1 ConfigMap bucket ",
      "1 Secret another ",
      "1 SecretProviderClass elsewhere token",
    ]);
    assert.deepEqual(
      classes.map(({ namespace, identity }) => [namespace, identity]),
      [["registry", ACCOUNT]],
    );
  });

  it("are found without classes if the account may not list them; any other failure is a problem", async () => {
    const failed = (status: number): Seen => ({ phase: "failed", error: new ApiError("LIST /apis", status, "Failed") });
    const refused = await followed(references(lookup(0, "Secret")), failed(403)).follow();
    assert.deepEqual([found(refused), refused.closed, refused.classes.length], [["0 Secret bucket "], [], 1]);
    const broken = await followed(references(lookup(0, "Secret")), failed(500)).follow();
    assert.deepEqual([broken.closed[0]?.problem.reason, broken.classes.length], ["Unavailable", 1]);
  });

  it("are not followed beyond a number of classes, which is reported", async () => {
    const members = Array.from({ length: 65 }, (_, n) => written(`store-${n}`));
    const { closed, lookups } = await followed(references(lookup(0, "Secret")), { phase: "synced", members }).follow();
    assert.match(
      closed[0]?.problem.message ?? "",
      /65 SecretProviderClasses write the Secret bucket, and Inlay follows at most 64/,
    );
    assert.equal(lookups.length, 65);
  });

  it("that mount a class which writes too much are looked for once for all Secrets, and its classes have a limit too", async () => {
    const of = (count: number): Seen => ({
      phase: "synced",
      members: [written("store"), ...Array.from({ length: count }, (_, n) => tooLarge(`large-${n}`))],
    });
    const from = references(lookup(0, "Secret"), lookup(0, "Secret", "another"), lookup(1, "Secret"));
    const { lookups, closed } = await followed(from, of(1)).follow();
    const unread = lookups.flatMap(({ step, find }) => (find.by === "reference" && find.isTooLarge ? [step] : []));
    assert.deepEqual([unread, closed], [[0, 1], []]);
    const beyond = await followed(from, of(65)).follow();
    assert.match(
      beyond.closed[0]?.problem.message ?? "",
      /65 SecretProviderClasses list more than 1000 Secrets and keys, /,
    );
  });

  it("are indexed once for all bindings, until a class changes", async () => {
    let [walked, members] = [0, Array.from({ length: 10 }, (_, n) => written(`store-${n}`))];
    const informers = { list: () => ({ phase: "synced" as const, members }) };
    const classes = new ProviderClasses({ byKind: async () => CLASSES }, informers);
    const from = references(...Array.from({ length: 5 }, (_, n) => lookup(0, "Secret", `secret-${n}`)));
    const follow = (key: string) =>
      classes.followed(key, ACCOUNT, from, async (work) => {
        for (;;) {
          const step = work.next();
          if (step.done) return step.value;
          walked++;
        }
      });
    await follow("registry/a");
    await follow("registry/b");
    assert.equal(walked, 5 + 10 + 5);
    members = [...members];
    await follow("registry/b");
    assert.equal(walked, 5 + 10 + 5 + 5 + 10);
  });

  it("are looked for by the classes too at most as often as a binding may", async () => {
    const members = Array.from({ length: 64 }, (_, n) => written(`store-${n}`));
    const secrets = Array.from({ length: 400 }, (_, n) => lookup(n, "Secret"));
    const { lookups, problem, classes } = await followed(references(...secrets), { phase: "synced", members }).follow();
    assert.deepEqual([lookups.length, problem?.reason, classes.length], [0, "InvalidBinding", 1]);
  });

  it("cost only rare requests if the kind does not exist, and none if no Secret is consumed", async () => {
    const missing = followed(references(lookup(0, "Secret")), { phase: "pending" }, false);
    const none = followed(references(lookup(0, "ConfigMap")), { phase: "pending" });
    for (let n = 0; n < 3; n++) await missing.follow().then(none.follow);
    assert.equal(none.asked(), 0);
    assert.equal(missing.asked(), 1);
  });
});
