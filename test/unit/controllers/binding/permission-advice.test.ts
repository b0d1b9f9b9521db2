/** What the advice about missing permissions costs the API server, and how long an answer is used. */
import assert from "node:assert/strict";
import type { ObjectRef } from "../../../../src/apimachinery/objects.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { SECRETS, SERVICE_ACCOUNTS } from "../../../../src/apimachinery/resources.ts";
import { PermissionAdvice } from "../../../../src/controllers/binding/permission-advice.ts";
import { forbidden } from "../../../../src/kube/access-error.ts";
import type { AccessRules } from "../../../../src/kube/access-rules.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import { serviceAccountIdentity } from "../../../../src/kube/identity.ts";
import { fakeClock } from "../../clock.ts";
import { bindingOf } from "../../objects.ts";
import { ISSUERS } from "../../resources.ts";

type Seen = Parameters<PermissionAdvice["lacking"]>[0];

describe("advice about missing permissions", () => {
  const clock = fakeClock();
  let asked: string[];
  let rules: AccessRules["resourceRules"];
  let advice: PermissionAdvice;

  beforeEach(() => {
    asked = [];
    rules = [];
    const client = {
      rules: async (_: string, namespace: string) => {
        asked.push(`rules ${namespace}`);
        return { incomplete: false, resourceRules: rules };
      },
      may: async (_: string, verb: string) => {
        asked.push(`may ${verb}`);
        return false;
      },
      get: async (_: string, { name }: { name: string }) => {
        asked.push(`get ${name}`);
        throw new ApiError("GET /x", 404, "NotFound", { kind: "serviceaccounts", name });
      },
    };
    const services = { client, connections: { get: () => undefined }, installation: { ownNamespace: "inlay-system" } };
    advice = new PermissionAdvice(services as unknown as ConstructorParameters<typeof PermissionAdvice>[0]);
  });

  const actorIn = (namespace: string, name = "inlay") => ({
    as: { identity: serviceAccountIdentity(namespace, name) },
    account: { resource: SERVICE_ACCOUNTS, namespace, name },
  });
  const deniedIn = (namespace: string, ...names: string[]) =>
    names.map((name) => {
      const ref = { resource: SECRETS, namespace, name };
      return forbidden({ identity: actorIn(namespace).as.identity, ref, verbs: ["get"] }, "get");
    });
  const seenIn = (namespace: string, generation = 1, objects: readonly ObjectRef[] = []): Seen => {
    const target = { apiVersion: "v1", kind: "ConfigMap", name: "a", fields: [] };
    const seen = {
      key: `${namespace}/harbor-s3`,
      binding: bindingOf({ metadata: { namespace, generation } }),
      actor: actorIn(namespace),
      compiled: { references: { parsedSources: [], sources: new Map() }, selection: { collections: [] } },
      observed: { objects: objects.map((ref) => ({ target, ref })) },
      rollout: undefined,
    };
    return seen as unknown as Seen;
  };
  const take = () => asked.splice(0);

  it("is asked for once in a minute while the same requests are denied, and again when others are", async () => {
    const first = await advice.lacking(seenIn("registry"), deniedIn("registry", "a"));
    assert.match(first?.commands.join() ?? "", /--verb=get --resource=secrets --resource-name=a;/);
    assert.deepEqual(take(), ["rules registry"]);
    for (let retry = 0; retry < 11; retry++) {
      await clock.pass(5_000);
      assert.equal(await advice.lacking(seenIn("registry"), deniedIn("registry", "a")), first);
    }
    assert.deepEqual(take(), []);
    const second = await advice.lacking(seenIn("registry"), deniedIn("registry", "b"));
    assert.match(second?.commands.join() ?? "", /--resource-name=b;/);
    await clock.pass(5_000);
    await advice.lacking(seenIn("registry", 2), deniedIn("registry", "b"));
    await clock.pass(60_000);
    await advice.lacking(seenIn("registry", 2), deniedIn("registry", "b"));
    assert.deepEqual(take(), ["rules registry", "rules registry", "rules registry"]);
  });

  it("is asked for again at once if the last answer still allows what was denied since", async () => {
    rules = [{ verbs: ["get"], apiGroups: [""], resources: ["secrets"], resourceNames: ["b"] }];
    await advice.lacking(seenIn("registry"), deniedIn("registry", "a"));
    rules = [];
    const later = await advice.lacking(seenIn("registry"), deniedIn("registry", "b"));
    assert.match(later?.commands.join() ?? "", /--verb=get --resource=secrets --resource-name=b;/);
    assert.deepEqual(take(), ["rules registry", "rules registry"]);
    // What the API server denies although its rules allow it is asked for twice, not forever.
    await clock.pass(5_000);
    rules = [{ verbs: ["get"], apiGroups: [""], resources: ["secrets"] }];
    assert.equal(await advice.lacking(seenIn("registry"), deniedIn("registry", "c")), undefined);
    assert.deepEqual(take(), ["rules registry", "rules registry"]);
  });

  it("is none and costs nothing when no request is denied, and is asked for again after that", async () => {
    await advice.lacking(seenIn("registry"), deniedIn("registry", "a"));
    take();
    await clock.pass(5_000);
    assert.equal(await advice.lacking(seenIn("registry"), [undefined, new Problem("Conflict", "taken")]), undefined);
    assert.deepEqual(take(), []);
    await advice.lacking(seenIn("registry"), deniedIn("registry", "a"));
    assert.deepEqual(take(), ["rules registry"]);
  });

  it("costs at most ten requests per second, however many bindings are denied", async () => {
    const issuers = Array.from({ length: 30 }, (_, at) => ({ resource: ISSUERS, name: `issuer-${at}` }));
    const names = Array.from({ length: 1_000 }, (_, at) => `team-${at}`);
    const retry = (name: string) => advice.lacking(seenIn(name, 1, issuers), deniedIn(name, "a"));
    const answers = await Promise.all(names.map(retry));
    const burst = take().length;
    assert.ok(burst <= 4 * 64, `${burst} requests`);
    assert.deepEqual([answers.filter((each) => each !== undefined).length, answers[0]?.commands.length], [4, 3]);
    let later = 0;
    for (let seconds = 0; seconds < 120; seconds += 5) {
      await clock.pass(5_000);
      for (const name of names.slice(4)) await retry(name);
      later += take().length;
    }
    assert.ok(burst + later <= 100 + 120 * 10 + 64, `${burst + later} requests`);
    // The last answer is used until there is a newer one.
    assert.equal(await retry("team-0"), answers[0]);
  });

  it("has at most 64 commands and 16 KiB, and says if there are more", async () => {
    const namespaces = Array.from({ length: 10 }, (_, at) => `n${at}`);
    const denied = (names: number, length: number) =>
      namespaces.flatMap((namespace) => {
        const many = Array.from({ length: names }, (_, at) => `${at}-${"x".repeat(length)}`);
        return many.map((name) => {
          const ref = { resource: SECRETS, namespace, name };
          return forbidden({ identity: actorIn("n0").as.identity, ref, verbs: ["get"] }, "get");
        });
      });
    const long = await advice.lacking(seenIn("n0"), denied(50, 100));
    assert.ok(long?.isCut && long.commands.length > 0 && long.commands.join("\n").length <= 16 * 1024);
    const few = await advice.lacking(seenIn("n0"), denied(1, 1));
    assert.deepEqual([few?.isCut, few?.commands.length], [false, 10]);
  });

  it("about a missing account looks once for another one in its namespace", async () => {
    const missing = new Problem("ServiceAccountNotFound", "gone");
    for (let at = 0; at < 100; at++) await advice.account(actorIn("registry", `a${at}`), missing);
    await advice.account(actorIn("web", "a"), missing);
    assert.deepEqual(take(), ["get inlay", "get inlay"]);
    await clock.pass(5_000);
    await advice.account(actorIn("registry", "a"), missing);
    assert.deepEqual(take(), ["get inlay"]);
  });
});
