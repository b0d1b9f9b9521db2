/** How many lookups of host names a connection runs at a time, and which of them connections share. */
import assert from "node:assert/strict";
import { fairLookups } from "../../../src/vault/http.ts";
import { settled } from "../clock.ts";

const FOUND = [{ address: "10.0.0.1", family: 4 }];

describe("lookups of host names", () => {
  /** The hosts that were looked up, in that order. */
  let begun: string[];
  let answers: Map<string, PromiseWithResolvers<typeof FOUND>>;
  const lookUp = () =>
    fairLookups((host) => {
      begun.push(host);
      const answer = Promise.withResolvers<typeof FOUND>();
      answers.set(host, answer);
      return answer.promise;
    });
  const answer = async (host: string) => {
    answers.get(host)?.resolve(FOUND);
    await settled();
  };

  beforeEach(() => {
    begun = [];
    answers = new Map();
  });

  it("run one at a time for a connection, however many hosts it names, and delay no other connection", async () => {
    const resolve = lookUp();
    const all = ["slow", "b", "c"].map((host) => resolve(host, "team-a/vault"));
    assert.deepEqual(begun, ["slow"]);
    const other = resolve("b", "team-b/vault");
    assert.deepEqual(begun, ["slow", "b"]);
    await answer("b");
    assert.deepEqual(await other, FOUND);
    assert.deepEqual(begun, ["slow", "b"]);
    for (const host of ["slow", "b", "c"]) await answer(host);
    assert.deepEqual(
      [await Promise.all(all), begun],
      [
        [FOUND, FOUND, FOUND],
        ["slow", "b", "b", "c"],
      ],
    );
  });

  it("are shared while they run, and repeated after that", async () => {
    const resolve = lookUp();
    const all = ["team-a/vault", "team-a/vault", "team-b/vault"].map((key) => resolve("vault", key));
    assert.deepEqual(begun, ["vault"]);
    await answer("vault");
    assert.deepEqual(await Promise.all(all), [FOUND, FOUND, FOUND]);
    void resolve("vault", "team-a/vault");
    assert.deepEqual(begun, ["vault", "vault"]);
  });

  it("that wait behind a slow one are not shared with other connections", async () => {
    const resolve = lookUp();
    void resolve("slow", "team-a/vault");
    const waiting = [resolve("vault", "team-a/vault"), resolve("vault", "team-a/vault")];
    const other = resolve("vault", "team-b/vault");
    assert.deepEqual(begun, ["slow", "vault"]);
    // The waiting lookup shares the one that another connection has started.
    await answer("slow");
    assert.deepEqual(begun, ["slow", "vault"]);
    await answer("vault");
    assert.deepEqual(await Promise.all([...waiting, other]), [FOUND, FOUND, FOUND]);
  });

  it("fail for all that share them, and the next one starts", async () => {
    const resolve = lookUp();
    const failing = [resolve("gone", "team-a/vault"), resolve("gone", "team-b/vault")];
    const next = resolve("vault", "team-a/vault");
    answers.get("gone")?.reject(new Error("not found"));
    for (const each of failing) await assert.rejects(each, /not found/);
    await settled();
    await answer("vault");
    assert.deepEqual(await next, FOUND);
  });
});
