/** The digest key, with answers that a real API server can't be made to give. test/integration tests the real answers. */
import assert from "node:assert/strict";
import { Problem, type Reason } from "../../../../src/apimachinery/problem.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import { DigestKeys } from "../../../../src/rollout/digest/keys.ts";
import { fakeClock } from "../../clock.ts";
import { fakeClient } from "../../fakes.ts";

interface Patch {
  metadata: { uid: string; resourceVersion: string };
  data: Record<string, string>;
}

/** The one Secret, as an API server stores it. */
class SecretServer {
  data: Record<string, string> = {};
  asked: string[] = [];
  /** Runs before every answer. */
  before: (verb: "get" | "patch") => void = () => {};
  #version = 1;

  /** Another client writes. */
  write(data: Record<string, string>): void {
    this.data = { ...this.data, ...data };
    this.#version++;
  }

  readonly client = fakeClient({
    get: async () => {
      this.#ask("get");
      return structuredClone({ metadata: { uid: "uid", resourceVersion: String(this.#version) }, data: this.data });
    },
    mergePatch: async (_as: unknown, _ref: unknown, patch: object) => {
      this.#ask("patch");
      const { metadata, data } = patch as Patch;
      if (metadata.resourceVersion !== String(this.#version)) throw new ApiError("PATCH", 409, "Conflict");
      this.write(data);
      return {};
    },
  });

  #ask(verb: "get" | "patch"): void {
    this.asked.push(verb);
    this.before(verb);
  }
}

const encoded = (data: Record<string, string>) =>
  Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")]));
const KEY = "0123456789abcdef0123456789abcdef";

describe("the digest key", () => {
  let server: SecretServer;
  const clock = fakeClock();
  beforeEach(() => {
    server = new SecretServer();
  });

  const keys = () => new DigestKeys(server.client, "inlay-system");
  const fails = (reason: Reason, message: RegExp) => (error: unknown) => {
    assert.ok(error instanceof Problem);
    assert.deepEqual([error.reason, error.retryPolicy], [reason, "Backoff"]);
    assert.match(error.message, message);
    return true;
  };

  it("consists of 32 random bytes, has an id with its date, and is read once", async () => {
    const made = keys();
    const [{ id, bytes }, again] = await Promise.all([made.primary(), made.primary()]);
    assert.match(id, /^2026-01-01-[0-9a-f]{8}$/);
    assert.equal(again.id, id);
    assert.equal(bytes.reveal().length, 32);
    assert.deepEqual(server.data, {
      ...encoded({ primary: id }),
      [id]: Buffer.from(bytes.reveal()).toString("base64"),
    });
    assert.deepEqual(await made.byId(id), { id, bytes });
    assert.equal(await made.byId("other"), undefined);
    assert.deepEqual(server.asked, ["get", "patch"]);
  });

  it("is that of another client that wrote first", async () => {
    server.before = (verb) => {
      if (verb === "patch") server.write(encoded({ primary: "theirs", theirs: KEY }));
    };
    const { id, bytes } = await keys().primary();
    assert.deepEqual([id, Buffer.from(bytes.reveal()).toString()], ["theirs", KEY]);
    assert.deepEqual(server.asked, ["get", "patch", "get"]);
  });

  it("is retried with a few requests while other clients write all the time", async () => {
    server.before = () => server.write({});
    await assert.rejects(keys().primary(), fails("Unavailable", /changes faster than Inlay can write it/));
    assert.equal(server.asked.length, 10);
  });

  it("is requested once a second while it is unavailable, however many bindings want it", async () => {
    server.before = () => {
      throw new ApiError("GET", 404, "NotFound");
    };
    const wanted = keys();
    const missing = fails("NoDigestKey", /kubectl create secret generic inlay-digest-key -n inlay-system$/);
    for (let wants = 0; wants < 3; wants++) await assert.rejects(wanted.primary(), missing);
    await assert.rejects(wanted.byId("old"), missing);
    assert.deepEqual(server.asked, ["get"]);
    await clock.pass(1_000);
    server.before = () => {};
    await wanted.primary();
    assert.deepEqual(server.asked, ["get", "get", "patch"]);
  });

  it("that was written without an answer is the one in use", async () => {
    server.before = (verb) => {
      if (verb !== "patch") return;
      server.before = () => {};
      server.write(encoded({ primary: "mine", mine: KEY }));
      throw new ApiError("PATCH", 0, "DeadlineExceeded");
    };
    const wanted = keys();
    await assert.rejects(wanted.primary(), fails("Unavailable", /did not patch Secret/));
    await clock.pass(1_000);
    assert.equal((await wanted.primary()).id, "mine");
  });

  it("that is missing or too short although it is named as primary is not silently replaced", async () => {
    for (const data of [
      { primary: "lost", old: KEY },
      { primary: "short", short: KEY.slice(1) },
    ]) {
      server.data = encoded(data);
      await assert.rejects(keys().primary(), (error) => {
        fails("NoDigestKey", /"op":"remove","path":"\/data\/primary"/)(error);
        return !/lost|short|0123/.test((error as Error).message);
      });
    }
    assert.ok(!server.asked.includes("patch"));
  });

  it("that is created again leaves the old keys in the Secret", async () => {
    server.data = encoded({ old: KEY, short: "x" });
    const made = keys();
    const { id } = await made.primary();
    assert.notEqual(id, "old");
    assert.equal(Buffer.from((await made.byId("old"))?.bytes.reveal() ?? []).toString(), KEY);
    assert.equal(await made.byId("short"), undefined);
    assert.deepEqual(Object.keys(server.data).sort(), [id, "old", "primary", "short"].sort());
  });

  it("that admission or the Secret itself keeps from being written has a message about that", async () => {
    for (const [status, reason] of [
      [403, "Forbidden"],
      [422, "Invalid"],
    ] as const) {
      server.before = (verb) => {
        if (verb === "patch") throw new ApiError("PATCH", status, reason, { message: "no" });
      };
      await assert.rejects(keys().primary(), fails("NoDigestKey", /admission policy, .*immutable/));
    }
  });

  describe("in a Secret that changes while the controller runs", () => {
    const gone = () => {
      server.data = {};
      server.before = () => {
        throw new ApiError("GET", 404, "NotFound");
      };
    };

    it("is not looked for until a rollout needs it", async () => {
      gone();
      assert.equal(await keys().verify(), undefined);
      assert.deepEqual(server.asked, []);
    });

    it("is as it was, also while its rotation waits for a restart", async () => {
      const wanted = keys();
      const { id } = await wanted.primary();
      assert.equal(await wanted.verify(), undefined);
      const { primary: _, ...rotating } = server.data;
      server.data = rotating;
      assert.equal(await wanted.verify(), undefined);
      assert.deepEqual(Object.keys(server.data), [id]);
    });

    it("is reported when the Secret is deleted, and stored again, with older keys, in the Secret that replaces it", async () => {
      server.data = encoded({ old: KEY });
      const wanted = keys();
      await wanted.primary();
      const before = server.data;
      assert.equal(Object.keys(before).length, 3);
      gone();
      const command = /in memory, .*: kubectl create secret generic inlay-digest-key -n inlay-system$/;
      for (let checks = 0; checks < 2; checks++) await assert.rejects(wanted.verify(), fails("NoDigestKey", command));
      server.before = () => {};
      server.write({});
      assert.equal(await wanted.verify(), undefined);
      assert.deepEqual(server.data, before);
    });

    it("is reported when the Secret has other keys, which stay", async () => {
      const wanted = keys();
      const { id } = await wanted.primary();
      for (const data of [encoded({ primary: "other", other: KEY }), encoded({ primary: id, [id]: KEY })]) {
        server.data = data;
        const problem = await wanted.verify();
        assert.equal(problem?.reason, "NoDigestKey");
        assert.match(problem.message, /other keys than the one in use.*restore it from a backup/);
        assert.deepEqual(server.data, data);
      }
    });

    it("that never existed is reported as before", async () => {
      gone();
      const wanted = keys();
      const missing = fails("NoDigestKey", /kubectl create secret generic inlay-digest-key -n inlay-system$/);
      await assert.rejects(wanted.primary(), missing);
      await clock.pass(1_000);
      await assert.rejects(wanted.verify(), missing);
    });
  });
});
