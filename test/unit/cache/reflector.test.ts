/** How a reflector stays in sync with the server, and what it reports, whatever happens to its streams. */
import assert from "node:assert/strict";
import { mock } from "node:test";
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import { SECRET_BINDINGS } from "../../../src/apimachinery/resources.ts";
import { objectKey, Reflector, type ReflectorState } from "../../../src/cache/reflector.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import type { WatchEvent } from "../../../src/kube/list-watch.ts";
import { fakeClock, settled } from "../clock.ts";
import { apiError, FakeListWatch, impersonationRefused, secret } from "./list-watch.ts";

interface Kept {
  uid: string;
  resourceVersion: string;
}

const listed = (resourceVersion: string, ...items: KubeObject[]) => [{ items, resourceVersion }];
const modified = (object: KubeObject): WatchEvent => ({ type: "MODIFIED", object });
const deleted = (object: KubeObject): WatchEvent => ({ type: "DELETED", object });
const bookmark = (resourceVersion: string): WatchEvent => ({
  type: "BOOKMARK",
  object: { metadata: { resourceVersion } },
});
const unconverted = (status = 500) =>
  ApiError.fromAnswer(
    "LIST /x",
    status,
    JSON.stringify({ message: "conversion webhook for example.com/v2, Kind=Item failed: no" }),
  );
const REFUSALS = [401, 403, 404, 405];

describe("a reflector", () => {
  let source: FakeListWatch;
  let reflector: Reflector<Kept>;
  /** The calls, as text: `synced`, `failed 403`, `registry/a 1>2`. */
  let calls: string[];
  /** How each kept object arrived. */
  let shown: unknown[];

  beforeEach(() => {
    source = new FakeListWatch();
    calls = [];
    shown = [];
    reflector = new Reflector<Kept>(source, {
      keep: ({ metadata: { uid, resourceVersion } }, before, { since, isAdded }) => {
        shown.push([uid, before?.resourceVersion, since, isAdded]);
        return { uid, resourceVersion };
      },
      changed: (key, after, before) =>
        calls.push(`${key} ${before?.resourceVersion ?? ""}>${after?.resourceVersion ?? ""}`),
      stateChanged: (state: ReflectorState) =>
        calls.push(state.phase === "failed" ? `failed ${state.error.status}` : state.phase),
    });
  });
  afterEach(() => reflector.stop());
  // Runs after the hook that stops the reflector: a timer must end in the clock in which it began.
  const clock = fakeClock();

  /** Starts it with these objects in the first list, and clears the calls. */
  async function inStep(...items: KubeObject[]): Promise<void> {
    source.answer = listed("10", ...items);
    reflector.start();
    await settled();
    assert.deepEqual(calls.splice(0), ["synced"]);
  }

  const keys = () => [...reflector.values()].map(({ uid }) => uid);

  describe("that starts", () => {
    it("is in sync once every page of the list has arrived and the watch is open, without calls for single objects", async () => {
      source.answer = [
        { items: [secret("a", "1"), secret("b", "2")], resourceVersion: "10" },
        { items: [secret("c", "3")], resourceVersion: "10" },
      ];
      source.grants = false;
      reflector.start();
      await settled();
      assert.deepEqual([reflector.state.phase, calls], ["pending", []]);
      await source.watching.grant();
      assert.deepEqual(calls, ["synced"]);
      assert.deepEqual(keys(), ["uid-a", "uid-b", "uid-c"]);
    });

    it("gives the event loop a turn after some work on a page", async () => {
      let now = 0;
      let turns = 0;
      const clock = mock.method(performance, "now", () => now);
      const turn = () => {
        turns++;
        if (turns < 10) setImmediate(turn);
      };
      const seen: number[] = [];
      const events = { changed: () => {}, stateChanged: () => {} };
      reflector = new Reflector<Kept>(source, {
        ...events,
        keep: ({ metadata: { uid, resourceVersion } }) => {
          now += 6;
          seen.push(turns);
          return { uid, resourceVersion };
        },
      });
      source.answer = listed("10", ...["a", "b", "c", "d", "e"].map((name) => secret(name, "1")));
      setImmediate(turn);
      reflector.start();
      await settled();
      clock.mock.restore();
      assert.equal(new Set(seen).size, 3);
      assert.deepEqual([seen[0], seen[2]], [seen[1], seen[3]]);
      assert.deepEqual(reflector.get("registry/a"), { uid: "uid-a", resourceVersion: "1" });
      assert.equal(source.watching.since, "10");
    });

    for (const status of REFUSALS) {
      it(`has failed at once when the list is refused with ${status}, and recovers by itself`, async () => {
        source.answer = apiError(status);
        reflector.start();
        await settled();
        assert.deepEqual(calls, [`failed ${status}`]);
        source.answer = listed("10", secret("a", "1"));
        await clock.pass(4_000);
        assert.deepEqual(calls, [`failed ${status}`, "synced"]);
      });
    }

    it("reports that the account lacks a permission after it was not impersonated, since that needs other advice", async () => {
      source.answer = impersonationRefused();
      reflector.start();
      await settled();
      source.answer = apiError(403);
      await clock.pass(4_000);
      assert.deepEqual(calls, ["failed 403", "failed 403"]);
    });

    it("has failed at once when the kind can't be converted, is tried less and less often, and recovers by itself", async () => {
      source.answer = unconverted();
      reflector.start();
      await settled();
      assert.deepEqual(calls, ["failed 500"]);
      assert.equal(reflector.stateOf(SECRET_BINDINGS).refused, true);
      await clock.pass(60_000);
      const before = source.lists;
      await clock.pass(60_000);
      assert.ok(source.lists - before <= 4, String(source.lists - before));
      source.answer = listed("10", secret("a", "1"));
      await clock.pass(30_000);
      assert.deepEqual(calls, ["failed 500", "synced"]);
    });

    it("fails, and is never in sync, if it may list but not watch", async () => {
      source.grants = false;
      reflector.start();
      await settled();
      for (let attempt = 0; attempt < 5; attempt++) {
        await source.watching.end(apiError(403));
        await clock.pass(4_000);
      }
      assert.equal(source.watches.length, 6);
      assert.ok(!calls.includes("synced"), `${calls}`);
      await source.watching.grant();
      assert.equal(calls.at(-1), "synced");
    });

    it("waits for a server in trouble, and fails only after the third attempt", async () => {
      for (const status of [500, 0, 429]) {
        const trouble = new FakeListWatch();
        trouble.answer = apiError(status);
        const states: string[] = [];
        const patient = new Reflector<Kept>(trouble, {
          keep: ({ metadata: { uid, resourceVersion } }) => ({ uid, resourceVersion }),
          changed: assert.fail,
          stateChanged: ({ phase }) => states.push(phase),
        });
        patient.start();
        await settled();
        while (trouble.lists < 3) {
          assert.deepEqual(states, []);
          await clock.pass(250);
        }
        assert.deepEqual(states, ["failed"]);
        await patient.stop();
      }
    });

    it("retries every few seconds while it is refused, because permission may be granted at any time", async () => {
      source.answer = apiError(403);
      reflector.start();
      await triesEvery(4_000);
    });
  });

  const interrupted = () => reflector.stateOf(SECRET_BINDINGS).interruptedSeconds > 0;

  /** Checks that failures have extended the pauses to their maximum, within half of it. */
  async function triesEvery(ms: number): Promise<void> {
    for (let failure = 0; failure < 15; failure++) await clock.pass(ms);
    const { lists } = source;
    await clock.pass(ms / 2 - 1);
    assert.equal(source.lists, lists);
    await clock.pass(ms / 2 + 1);
    assert.equal(source.lists, lists + 1);
  }

  describe("in sync", () => {
    it("reports each change with the cached object before and after", async () => {
      await inStep(secret("a", "1"));
      await source.watching.send(
        { type: "ADDED", object: secret("b", "11") },
        modified(secret("a", "12")),
        deleted(secret("b", "13")),
      );
      assert.deepEqual(calls, ["registry/b >11", "registry/a 1>12", "registry/b 11>"]);
      assert.deepEqual(keys(), ["uid-a"]);
    });

    it("reports no known state, and no deletion of an unknown object", async () => {
      await inStep(secret("a", "1"));
      await source.watching.send(modified(secret("a", "1")), deleted(secret("x", "12")), bookmark("20"));
      assert.deepEqual(calls, []);
    });

    it("resumes from the last version when the stream ends or breaks, without a list", async () => {
      await inStep(secret("a", "1"));
      for (const [last, error] of [
        ["12", undefined],
        ["13", apiError(0, "UND_ERR_SOCKET")],
        ["14", apiError(500)],
        ["15", apiError(429)],
      ] as const) {
        await source.watching.send(modified(secret("a", last)));
        await source.watching.end(error);
        await clock.pass(30_000);
        assert.equal(source.watching.since, last);
      }
      await source.watching.send(bookmark("40"));
      await source.watching.end();
      await clock.pass(30_000);
      assert.equal(source.watching.since, "40");
      assert.equal(source.lists, 1);
      assert.deepEqual(calls, ["registry/a 1>12", "registry/a 12>13", "registry/a 13>14", "registry/a 14>15"]);
    });

    it("lists again when its version has expired, and reports only the differences", async () => {
      await inStep(secret("same", "1"), secret("changed", "2"), secret("gone", "3"));
      source.answer = listed("50", secret("same", "1"), secret("changed", "42"), secret("new", "43"));
      await source.watching.end(apiError(410, "Expired"));
      await clock.pass(1_000);
      assert.deepEqual(calls.toSorted(), ["registry/changed 2>42", "registry/gone 3>", "registry/new >43"]);
      assert.equal(source.watching.since, "50");
      assert.equal(reflector.state.phase, "synced");
    });

    it("says what was added, and the last version before a later list", async () => {
      await inStep(secret("a", "1"));
      await source.watching.send({ type: "ADDED", object: secret("b", "12") }, modified(secret("a", "13")));
      source.answer = listed("50", secret("a", "42"), secret("b", "12"), secret("c", "43"));
      await source.watching.end(apiError(410, "Expired"));
      await clock.pass(1_000);
      assert.deepEqual(shown, [
        ["uid-a", undefined, undefined, false],
        ["uid-b", undefined, "12", true],
        ["uid-a", "1", "13", false],
        ["uid-a", "13", "13", false],
        ["uid-c", undefined, "13", false],
      ]);
    });

    it("lists at once when its version has expired after trouble, but with backoff if each new list has expired too", async () => {
      await inStep(secret("a", "1"));
      for (let failure = 0; failure < 5; failure++) {
        await source.watching.end(apiError(500));
        await clock.pass(30_000);
      }
      await source.watching.end(apiError(410, "Expired"));
      await clock.pass(250);
      assert.equal(source.lists, 2);
      for (let time = 0; time < 8; time++) {
        await source.watching.end(apiError(410, "Expired"));
        await clock.pass(30_000);
      }
      const { lists } = source;
      await source.watching.end(apiError(410, "Expired"));
      await clock.pass(10_000);
      assert.equal(source.lists, lists);
    });

    it("fails when it is refused, and reports changes and deletions once it is allowed again", async () => {
      await inStep(secret("a", "1"), secret("gone", "2"));
      source.answer = apiError(403);
      await source.watching.end(apiError(403));
      await clock.pass(4_000);
      assert.deepEqual(calls.splice(0), ["failed 403"]);
      source.answer = listed("50", secret("a", "41"));
      await clock.pass(4_000);
      assert.deepEqual(calls, ["registry/gone 2>", "registry/a 1>41", "synced"]);
    });

    it("stays so while the kind can't be converted for a moment, and resumes without a list", async () => {
      await inStep(secret("a", "1"));
      source.grants = false;
      source.answer = unconverted();
      for (const error of [unconverted(), unconverted(429), apiError(0, "ECONNRESET"), unconverted()]) {
        await source.watching.end(error);
        await clock.pass(4_000);
      }
      // The connection failed in between, so this is a new failure.
      assert.deepEqual([calls, source.lists, source.watching.since, reflector.state.phase], [[], 1, "10", "synced"]);
      assert.equal(reflector.stateOf(SECRET_BINDINGS).refused, false);
      // And so is one after the watch was open for a while.
      await source.watching.grant();
      await clock.pass(60_000);
      await source.watching.end(unconverted());
      assert.deepEqual([calls, keys()], [[], ["uid-a"]]);
    });

    it("fails when the kind can't be converted for longer than five seconds, and then lists again", async () => {
      await inStep(secret("a", "1"), secret("gone", "2"));
      source.grants = false;
      source.answer = unconverted();
      for (let time = 0; time < 2; time++) {
        await source.watching.end(unconverted());
        assert.deepEqual(calls, []);
        await clock.pass(4_000);
      }
      await source.watching.end(unconverted());
      assert.deepEqual([calls.splice(0), source.lists], [["failed 500"], 1]);
      source.grants = true;
      source.answer = listed("50", secret("a", "41"));
      await clock.pass(5_000);
      assert.deepEqual([calls, source.lists], [["registry/gone 2>", "registry/a 1>41", "synced"], 2]);
    });

    it("fails, too, when the watch opens each time and ends at once", async () => {
      await inStep(secret("a", "1"));
      for (let time = 0; time < 2; time++) {
        await source.watching.end(unconverted());
        await clock.pass(4_000);
      }
      assert.deepEqual(calls, []);
      await source.watching.end(unconverted());
      assert.deepEqual(calls, ["failed 500"]);
    });

    it("keeps its objects while the server is in trouble, and retries with backoff", async () => {
      await inStep(secret("a", "1"));
      source.answer = apiError(500);
      await source.watching.end(apiError(410, "Expired"));
      await triesEvery(30_000);
      assert.deepEqual([reflector.state.phase, keys(), calls], ["synced", ["uid-a"], []]);
    });

    it("reports an interruption from the end of a stream until the next one is open", async () => {
      await inStep(secret("a", "1"));
      assert.equal(interrupted(), false);
      source.grants = false;
      await source.watching.end(apiError(0, "UND_ERR_SOCKET"));
      assert.equal(interrupted(), true);
      await clock.pass(500);
      assert.deepEqual([source.watches.length, interrupted()], [2, true]);
      await source.watching.grant();
      assert.deepEqual([interrupted(), reflector.state.phase], [false, "synced"]);
    });

    it("retries every few seconds while the server can't be reached, however long that takes", async () => {
      await inStep();
      source.grants = false;
      for (let failure = 0; failure < 15; failure++) {
        await source.watching.end(apiError(0, "ECONNREFUSED"));
        await clock.pass(4_000);
      }
      assert.equal(source.watches.length, 16);
    });

    it("waits as long as an overloaded server demands", async () => {
      await inStep();
      await source.watching.end(apiError(429, "TooManyRequests", 7));
      await clock.pass(6_999);
      assert.equal(source.watches.length, 1);
      await clock.pass(1);
      assert.equal(source.watches.length, 2);
      // Up to a maximum.
      await source.watching.end(apiError(429, "TooManyRequests", 7_000));
      await clock.pass(30_000);
      assert.equal(source.watches.length, 3);
    });

    it("restarts a stream that was silent for longer than the interval of bookmarks", async () => {
      await inStep(secret("a", "1"));
      await clock.pass(99_999);
      assert.equal(source.watches.length, 1);
      const silent = source.watching;
      await clock.pass(1);
      assert.equal(silent.isOpen, false);
      await clock.pass(250);
      assert.deepEqual([source.watches.length, source.watching.since, source.lists], [2, "10", 1]);
      assert.deepEqual(calls, []);
    });

    it("restarts a stream that lasted at once, and one that keeps ending with backoff", async () => {
      await inStep();
      await clock.pass(6_000);
      await source.watching.end();
      await clock.pass(250);
      assert.equal(source.watches.length, 2);
      for (let round = 0; round < 12; round++) {
        await source.watching.end();
        await clock.pass(30_000);
      }
      const { length } = source.watches;
      await source.watching.end();
      await clock.pass(14_999);
      assert.equal(source.watches.length, length);
      await clock.pass(15_001);
      assert.equal(source.watches.length, length + 1);
    });
  });

  describe("that is stopped", () => {
    it("ends at once: during a list, a watch, an opening watch, and a pause", async () => {
      for (const [when, prepare] of Object.entries({
        list: () => {
          source.answer = "nothing";
        },
        watch: () => {},
        opening: () => {
          source.grants = false;
        },
        pause: () => {
          source.answer = apiError(500);
        },
      })) {
        source = new FakeListWatch();
        prepare();
        const stopping = new Reflector<Kept>(source, {
          keep: ({ metadata: { uid, resourceVersion } }) => ({ uid, resourceVersion }),
          changed: () => {},
          stateChanged: () => {},
        });
        stopping.start();
        await settled();
        let stopped = false;
        void stopping.stop().then(() => {
          stopped = true;
        });
        await settled();
        assert.ok(stopped, when);
        assert.ok(
          source.watches.every(({ isOpen }) => !isOpen),
          when,
        );
        const { lists, watches } = source;
        await clock.pass(60_000);
        assert.deepEqual([source.lists, source.watches.length], [lists, watches.length], when);
      }
    });

    it("reports nothing more", async () => {
      await inStep(secret("a", "1"));
      const { watching } = source;
      await reflector.stop();
      await watching.send(modified(secret("a", "2")));
      await clock.pass(60_000);
      assert.deepEqual(calls, []);
    });
  });
});

it("the key of an object is its namespace and name, or only its name if it is cluster-scoped", () => {
  assert.equal(objectKey("registry", "bucket"), "registry/bucket");
  assert.equal(objectKey(undefined, "node"), "node");
  assert.equal(objectKey("", "node"), "node");
});
