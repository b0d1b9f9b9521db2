/** The key of the installation where the API server can't be made to answer so: what it does answer, test/integration tries. */
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

/** The one Secret, as an API server keeps it. */
class SecretServer {
  data: Record<string, string> = {};
  asked: string[] = [];
  /** Stands before every answer. */
  before: (verb: "get" | "patch") => void = () => {};
  #version = 1;

  /** Somebody else writes. */
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

describe("the key of the installation", () => {
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

  it("is made of 32 random bytes, under an id that tells its day, and is read once", async () => {
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

  it("is somebody else's, who was quicker", async () => {
    server.before = (verb) => {
      if (verb === "patch") server.write(encoded({ primary: "theirs", theirs: KEY }));
    };
    const { id, bytes } = await keys().primary();
    assert.deepEqual([id, Buffer.from(bytes.reveal()).toString()], ["theirs", KEY]);
    assert.deepEqual(server.asked, ["get", "patch", "get"]);
  });

  it("is waited for when others write all the time, a few requests long", async () => {
    server.before = () => server.write({});
    await assert.rejects(keys().primary(), fails("Unavailable", /is changed by other clients all the time/));
    assert.equal(server.asked.length, 10);
  });

  it("is asked for once a second, however many want it while it can't be had", async () => {
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

  it("that was written, though no answer came, is the one that is used", async () => {
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

  it("that is gone or too short while it is said to be in use is not made anew in silence", async () => {
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

  it("that is made anew leaves the old ones, which have no primary", async () => {
    server.data = encoded({ old: KEY, short: "x" });
    const made = keys();
    const { id } = await made.primary();
    assert.notEqual(id, "old");
    assert.equal(Buffer.from((await made.byId("old"))?.bytes.reveal() ?? []).toString(), KEY);
    assert.equal(await made.byId("short"), undefined);
    assert.deepEqual(Object.keys(server.data).sort(), [id, "old", "primary", "short"].sort());
  });

  it("that admission or the Secret itself keeps from being written says so", async () => {
    for (const [status, reason] of [
      [403, "Forbidden"],
      [422, "Invalid"],
    ] as const) {
      server.before = (verb) => {
        if (verb === "patch") throw new ApiError("PATCH", status, reason, { message: "no" });
      };
      await assert.rejects(keys().primary(), fails("NoDigestKey", /an admission policy, or immutable/));
    }
  });
});
