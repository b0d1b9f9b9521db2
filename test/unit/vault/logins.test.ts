/** How many logins there are, how long they last, and what happens to their tokens. */
import assert from "node:assert/strict";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { Poller } from "../../../src/sources/poller.ts";
import type { Auth, ConnectionServices } from "../../../src/vault/connection.ts";
import { VaultReply, type VaultRequest, type VaultSender } from "../../../src/vault/http.ts";
import { HttpFailure } from "../../../src/vault/http-failure.ts";
import { Logins } from "../../../src/vault/logins.ts";
import { foundIn, secretText } from "../../controller/leak-detector.ts";
import { fakeClock, settled } from "../clock.ts";
import { NOT_IN_FILES } from "../fakes.ts";
import { Counts, KUBERNETES, READER, servicesFor } from "./server.ts";

const [SECOND, MINUTE] = [1_000, 60_000];
const READ = { operation: "data", method: "GET", path: "kv/data/x" } as const;
const OTHER = { identity: "system:serviceaccount:other:inlay", namespace: "other" };

/** Records the tokens that it issued, and names them by number. */
class FakeVault implements VaultSender {
  /** Such as `login`, or `data 1` with the first token. */
  readonly requests: string[] = [];
  readonly bodies: Record<string, unknown>[] = [];
  readonly tokens: string[] = [];
  readonly valid = new Set<string>();
  ttl = 3600;
  renewable = true;
  more: Record<string, unknown> = {};
  /** Replaces the answer to an operation; undefined for the usual answer. */
  instead: (operation: string) => VaultReply | HttpFailure | Promise<VaultReply> | undefined = () => undefined;

  give(): string {
    const token = secretText("token");
    this.tokens.push(token);
    this.valid.add(token);
    return token;
  }

  async send({ operation, token, body }: VaultRequest): Promise<VaultReply> {
    const given = token?.reveal() ?? "";
    const number = given === "" ? "" : ` ${this.tokens.indexOf(given) + 1}`;
    this.requests.push(`${operation}${number}`);
    if (operation === "login") this.bodies.push(body?.reveal() ?? {});
    const instead = await this.instead(operation);
    if (instead instanceof HttpFailure) throw instead;
    if (instead !== undefined) return instead;
    const { ttl, renewable } = this;
    if (operation === "login") {
      return reply(200, { auth: { client_token: this.give(), lease_duration: ttl, renewable, ...this.more } });
    }
    if (!this.valid.has(given)) return reply(403, { errors: ["permission denied"] });
    if (operation === "revoke") this.valid.delete(given);
    if (operation === "lookup") return reply(200, { data: { ttl, renewable } });
    return reply(200, operation === "renew" ? { auth: { lease_duration: ttl, renewable } } : { data: {} });
  }
}

const reply = (status: number, body: unknown, retryAfterMs?: number) =>
  new VaultReply(status, JSON.stringify(body), retryAfterMs);

describe("logins to Vault", () => {
  const clock = fakeClock();
  let vault: FakeVault;
  let counts: Counts;
  let asked: string[];

  beforeEach(() => {
    vault = new FakeVault();
    asked = [];
  });

  function loginsOf(auth: Auth = KUBERNETES, services: Partial<ConnectionServices> = {}): Logins {
    counts = new Counts();
    const settings = { address: new URL("https://vault.vault.svc:8200"), timeoutMs: 5_000, auth };
    const requestToken = async (identity: string, audiences: readonly string[]) => {
      asked.push(`${identity} ${audiences}`);
      return new SecretValue(secretText("jwt"));
    };
    const given = servicesFor({ requestToken, metrics: counts, now: () => Date.now(), random: () => 0, ...services });
    return new Logins(settings, vault, given);
  }
  const count = (operation: string) => vault.requests.filter((each) => each.split(" ")[0] === operation).length;
  const failsAs = (sent: Promise<unknown>, reason: string, says: RegExp) =>
    assert.rejects(sent, (error) => {
      assert.ok(error instanceof Problem, String(error));
      assert.equal(error.reason, reason);
      assert.match(error.message, says);
      assert.deepEqual(foundIn(error.message), []);
      return true;
    });
  /** Reads each minute. */
  async function readFor(logins: Logins, minutes: number) {
    for (let minute = 0; minute < minutes; minute++) {
      await logins.send(READER, READ);
      await clock.pass(MINUTE);
    }
  }

  it("are shared by all readers of an account, also at the same time", async () => {
    const logins = loginsOf();
    await Promise.all(Array.from({ length: 100 }, () => logins.send(READER, READ)));
    await logins.send({ ...READER }, READ);
    assert.equal(count("login"), 1);
    assert.deepEqual(asked, ["system:serviceaccount:registry:inlay vault"]);
    assert.equal(vault.bodies[0]?.["role"], "inlay-registry");
    assert.deepEqual(counts.logins, ["success"]);
  });

  it("are separate for each account and role if bindings log in", async () => {
    const logins = loginsOf();
    const elsewhere = { ...READER, namespace: "claims" };
    for (const reader of [READER, OTHER, elsewhere]) await logins.send(reader, READ);
    assert.equal(count("login"), 3);
    assert.equal(new Set([READER, OTHER, elsewhere].map((reader) => logins.keyOf(reader))).size, 3);
    assert.deepEqual(
      vault.bodies.map(({ role }) => role),
      ["inlay-registry", "inlay-other", "inlay-claims"],
    );
  });

  it("are shared by all readers if the connection logs in, by an account, an AppRole or a token", async () => {
    const as = "system:serviceaccount:vault:inlay";
    const secretID = secretText("secret-id");
    const auths: [auth: Auth, logins: number][] = [
      [{ ...KUBERNETES, role: "inlay", as }, 1],
      [{ kind: "appRole", mount: "approle", roleID: "r", secretID: new SecretValue(secretID) }, 1],
      [{ kind: "token", token: new SecretValue(vault.give()) }, 0],
    ];
    for (const [auth, number] of auths) {
      vault.requests.splice(0);
      const logins = loginsOf(auth);
      for (const reader of [READER, OTHER]) await logins.send(reader, READ);
      assert.equal(count("login"), number);
      assert.equal(logins.keyOf(READER), logins.keyOf(OTHER));
    }
    assert.deepEqual(asked, [`${as} vault`]);
    assert.deepEqual(vault.bodies[1], { role_id: "r", secret_id: secretID });
  });

  it("are renewed at two thirds of their life while they are used", async () => {
    const logins = loginsOf();
    await readFor(logins, 39);
    assert.deepEqual([count("renew"), count("login")], [0, 1]);
    await readFor(logins, 42);
    assert.deepEqual([count("renew"), count("login")], [2, 1]);
  });

  it("are repeated if the token can't be renewed or nears its end, and the former token is revoked", async () => {
    vault.renewable = false;
    const logins = loginsOf();
    await readFor(logins, 41);
    assert.deepEqual([count("renew"), count("login"), vault.requests.includes("revoke 1")], [0, 2, true]);
    vault.renewable = true;
    await readFor(logins, 40);
    assert.equal(count("login"), 3);
    vault.instead = (operation) =>
      operation === "renew" ? reply(200, { auth: { lease_duration: 60, renewable: true } }) : undefined;
    await readFor(logins, 41);
    assert.deepEqual([count("renew"), count("login")], [1, 4]);
    assert.equal(vault.valid.size, 1);
  });

  it("keep their token while Vault does not answer a renewal, with backoff, until it expires", async () => {
    const logins = loginsOf();
    await readFor(logins, 39);
    vault.instead = (operation) => (operation === "data" ? undefined : new HttpFailure("timeout"));
    for (let second = 0; second < 300; second++) {
      assert.equal((await logins.send(READER, READ)).status, 200);
      await clock.pass(SECOND);
    }
    assert.ok(count("renew") >= 8 && count("renew") <= 20, `${count("renew")} renewals`);
    vault.instead = () => undefined;
    for (let second = 0; second < 40; second++) await clock.pass(SECOND);
    await readFor(logins, 30);
    assert.equal(count("login"), 1);
  });

  it("are revoked and removed when they were not used for five minutes", async () => {
    const logins = loginsOf();
    await readFor(logins, 3);
    await clock.pass(3 * MINUTE);
    assert.equal(count("revoke"), 0);
    await clock.pass(MINUTE);
    assert.equal(vault.requests.at(-1), "revoke 1");
    await clock.pass(120 * MINUTE);
    assert.equal(count("renew"), 0);
    await logins.send(READER, READ);
    assert.equal(vault.requests.at(-1), "data 2");
  });

  it("by a given token are kept and renewed even without readers", async () => {
    const logins = loginsOf({ kind: "token", token: new SecretValue(vault.give()) });
    await logins.logIn(READER);
    for (let minute = 0; minute < 130; minute++) await clock.pass(MINUTE);
    assert.deepEqual(vault.requests, ["lookup 1", "renew 1", "renew 1", "renew 1"]);
    assert.equal((await logins.send(READER, READ)).status, 200);
    assert.equal(count("lookup"), 1);
  });

  it("by a given token end when it expires, and are retried at the next use", async () => {
    vault.renewable = false;
    const given = vault.give();
    const logins = loginsOf({ kind: "token", token: new SecretValue(given) });
    await logins.logIn(READER);
    vault.valid.delete(given);
    vault.instead = (operation) =>
      operation === "lookup" ? reply(403, { errors: ["permission denied", "invalid token"] }) : undefined;
    for (let minute = 0; minute < 70; minute++) await clock.pass(MINUTE);
    assert.equal(logins.isFailing(READER), true);
    const before = count("lookup");
    await clock.pass(60 * MINUTE);
    assert.equal(count("lookup"), before);
    await failsAs(logins.logIn(READER), "VaultDenied", /has expired or was revoked/);
    assert.equal(count("lookup"), before + 1);
  });

  it("end with the connection, even running ones, except for a given token", async () => {
    const logins = loginsOf();
    await logins.send(READER, READ);
    const slow = Promise.withResolvers<undefined>();
    vault.instead = (operation) => (operation === "login" ? slow.promise.then(() => undefined as never) : undefined);
    const under = logins.send(OTHER, READ);
    under.catch(() => {});
    await settled();
    const ended = logins.end();
    slow.resolve(undefined);
    await ended;
    assert.equal(vault.valid.size, 0);

    vault.instead = () => undefined;
    const other = loginsOf({ kind: "token", token: new SecretValue(vault.give()) });
    await other.send(READER, READ);
    await other.end();
    assert.equal(vault.valid.size, 1);
  });

  it("are not started when the connection has ended, or is ending", async () => {
    const logins = loginsOf();
    const slow = Promise.withResolvers<undefined>();
    await logins.send(READER, READ);
    vault.instead = (operation) => (operation === "revoke" ? slow.promise.then(() => undefined as never) : undefined);
    const ended = logins.end();
    const over = /^the connection was replaced; /;
    for (const reader of [READER, OTHER]) await failsAs(logins.send(reader, READ), "ConnectionNotReady", over);
    await failsAs(logins.logIn(OTHER), "ConnectionNotReady", over);
    slow.resolve(undefined);
    await ended;
    await failsAs(logins.send(OTHER, READ), "ConnectionNotReady", over);
    assert.deepEqual([vault.requests, vault.valid.size], [["login", "data 1", "revoke 1"], 0]);
  });

  for (const [what, made, use] of [
    [
      "of a login that no reader used any more",
      1,
      (logins: Logins) => readFor(logins, 1).then(() => clock.pass(5 * MINUTE)),
    ],
    ["of the token before a new login", 2, (logins: Logins) => readFor(logins, 41)],
  ] as const) {
    it(`end when the running revocation is done, ${what}`, async () => {
      vault.renewable = false;
      const logins = loginsOf();
      const slow = Promise.withResolvers<undefined>();
      vault.instead = (operation) => (operation === "revoke" ? slow.promise.then(() => undefined as never) : undefined);
      await use(logins);
      assert.deepEqual([count("login"), count("revoke"), vault.valid.size], [made, 1, made]);
      let hasEnded = false;
      const ended = logins.end().then(() => {
        hasEnded = true;
      });
      await settled();
      assert.equal(hasEnded, false);
      slow.resolve(undefined);
      await ended;
      assert.equal(vault.valid.size, 0);
    });
  }

  it("end with both tokens while the new login is running", async () => {
    vault.renewable = false;
    const logins = loginsOf();
    await readFor(logins, 39);
    const slow = Promise.withResolvers<undefined>();
    vault.instead = (operation) => (operation === "login" ? slow.promise.then(() => undefined as never) : undefined);
    await clock.pass(2 * MINUTE);
    assert.equal(count("login"), 2);
    const ended = logins.end();
    slow.resolve(undefined);
    await ended;
    assert.deepEqual([count("revoke"), vault.valid.size], [2, 0]);
  });

  it("return an answer that contains a short token as a word, and none that contains a token of Vault's", async () => {
    const answer = { data: { data: { user: "root" } } };
    vault.valid.add("root");
    const root = loginsOf({ kind: "token", token: new SecretValue("root") });
    vault.instead = (operation) => (operation === "data" ? reply(200, answer) : undefined);
    assert.equal((await root.send(READER, READ)).status, 200);
    const given = vault.give();
    vault.instead = (operation) => (operation === "data" ? reply(200, { data: { id: `x${given}` } }) : undefined);
    const long = loginsOf({ kind: "token", token: new SecretValue(given) });
    await failsAs(long.send(READER, READ), "ForbiddenPath", /token of the login itself/);
  });

  it("use a token that does not expire, and a batch token, without renewing or revoking it", async () => {
    vault.ttl = 0;
    const root = loginsOf({ kind: "token", token: new SecretValue(vault.give()) });
    await readFor(root, 10);
    Object.assign(vault, { ttl: 3600, renewable: false, more: { token_type: "batch", accessor: "" } });
    const batch = loginsOf();
    await readFor(batch, 41);
    await batch.end();
    assert.deepEqual([count("renew"), count("revoke"), count("login")], [0, 0, 2]);
  });

  describe("after a denied read", () => {
    const deny = (...errors: string[]) => {
      vault.instead = (operation) => (operation === "data" ? reply(403, { errors }) : undefined);
    };

    it("are kept if Vault still knows the token, which is checked at most twice a minute", async () => {
      const logins = loginsOf();
      await logins.send(READER, READ);
      deny("permission denied");
      for (let second = 0; second < 60; second++) {
        await clock.pass(SECOND);
        assert.equal((await logins.send(READER, READ)).status, 403);
      }
      assert.equal(count("login"), 1);
      assert.ok(count("lookup") <= 2);
    });

    it("are repeated if the token was revoked, and so are all denied reads", async () => {
      const logins = loginsOf();
      await logins.send(READER, READ);
      await clock.pass(MINUTE);
      vault.valid.clear();
      const replies = await Promise.all(Array.from({ length: 20 }, () => logins.send(READER, READ)));
      assert.ok(replies.every(({ status }) => status === 200));
      assert.deepEqual([count("login"), count("lookup")], [2, 1]);
    });

    it("are repeated without a lookup if Vault reports an unknown token", async () => {
      const logins = loginsOf();
      await logins.send(READER, READ);
      await clock.pass(10 * SECOND);
      const [first = ""] = vault.tokens;
      vault.valid.delete(first);
      let isFirst = true;
      vault.instead = (operation) => {
        if (operation !== "data" || !isFirst) return undefined;
        isFirst = false;
        return reply(403, { errors: ["2 errors occurred:\n\t* permission denied\n\t* invalid token\n\n"] });
      };
      assert.equal((await logins.send(READER, READ)).status, 200);
      assert.deepEqual([count("login"), count("lookup")], [2, 0]);
    });

    it("are repeated at most twice a minute for a token that may not be looked up, and the former one is revoked", async () => {
      const logins = loginsOf();
      await logins.send(READER, READ);
      vault.instead = (operation) =>
        operation === "data" || operation === "lookup" ? reply(403, { errors: ["permission denied"] }) : undefined;
      for (let second = 0; second < 120; second++) {
        await clock.pass(SECOND);
        assert.equal((await logins.send(READER, READ)).status, 403);
      }
      assert.ok(count("login") >= 3 && count("login") <= 5, `${count("login")} logins`);
      assert.equal(vault.valid.size, 1);
    });
  });

  describe("that fail", () => {
    it("are retried with backoff, however many readers need them", async () => {
      const logins = loginsOf();
      vault.instead = (operation) => (operation === "login" ? reply(500, { errors: ["x"] }) : undefined);
      for (let second = 0; second < 120; second++) {
        await Promise.allSettled(Array.from({ length: 50 }, () => logins.send(READER, READ)));
        await clock.pass(SECOND);
      }
      assert.ok(count("login") >= 5 && count("login") <= 10, `${count("login")} logins`);
      vault.instead = () => undefined;
      await clock.pass(30 * SECOND);
      assert.equal((await logins.send(READER, READ)).status, 200);
    });

    it("are retried at each poll: the pauses of polls and of logins don't add up", async () => {
      for (const [ofPolls, ofLogins] of [
        [0, 1],
        [1, 0],
        [0.5, 0.5],
      ] as const) {
        const logins = loginsOf(KUBERNETES, { random: () => ofLogins });
        vault.requests.splice(0);
        vault.instead = (operation) => (operation === "login" ? new HttpFailure("refused") : undefined);
        const hooks = { changed: () => {}, refreshed: () => {}, onError: assert.fail };
        const poller = new Poller(hooks, { now: () => Date.now(), random: () => ofPolls });
        let asked = 0;
        const ask = async () => {
          asked++;
          await logins.send(READER, READ);
          return { version: "1", content: undefined, size: 0 };
        };
        poller.subscribe("registry/harbor", [
          { id: "x", group: "registry/vault", refreshMs: 1_000, ask, ...NOT_IN_FILES },
        ]);
        for (let tick = 0; tick < 2_000; tick++) await clock.pass(100);
        assert.ok(asked >= 8, `${asked} polls`);
        assert.equal(count("login"), asked);
        poller.stop();
      }
    });

    it("are retried at once on request, even while one is running, and then with the former pauses", async () => {
      const logins = loginsOf();
      const refused = reply(403, { errors: ["permission denied"] });
      vault.instead = (operation) => (operation === "login" ? refused : undefined);
      const fails = () => failsAs(logins.send(READER, READ), "VaultDenied", /was refused/);
      for (let second = 0; second < 60; second++) {
        await fails();
        await clock.pass(SECOND);
      }
      const before = count("login");
      await fails();
      logins.retry();
      await fails();
      await fails();
      assert.equal(count("login"), before + 1);
      await clock.pass(15 * SECOND);
      await fails();
      assert.equal(count("login"), before + 1);

      const slow = Promise.withResolvers<VaultReply>();
      vault.instead = (operation) => (operation === "login" ? slow.promise : undefined);
      logins.retry();
      const under = fails();
      await settled();
      logins.retry();
      slow.resolve(refused);
      await under;
      vault.instead = () => undefined;
      assert.equal((await logins.send(READER, READ)).status, 200);
    });

    it("wait as long as the server demands", async () => {
      const logins = loginsOf();
      vault.instead = () => reply(429, {}, 100 * SECOND);
      await failsAs(logins.send(READER, READ), "VaultThrottled", /limits requests/);
      await clock.pass(99 * SECOND);
      await failsAs(logins.send(READER, READ), "VaultThrottled", /limits requests/);
      assert.equal(count("login"), 1);
    });

    const answers: [what: string, answer: VaultReply | HttpFailure, reason: string, says: RegExp][] = [
      [
        "for a role that is not bound to the account",
        reply(403, { errors: [`${secretText("quoted")} not authorized`] }),
        "VaultDenied",
        /^login at auth\/kubernetes as role inlay-registry was refused for ServiceAccount registry\/inlay; check that the role exists, .+ audience \(vault\)$/,
      ],
      ["for a role that is not there", reply(400, { errors: ["invalid role name"] }), "VaultDenied", /was refused/],
      ["at a mount that is not there", reply(404, { errors: [] }), "VaultDenied", /nothing is mounted there/],
      ["at a sealed server", reply(503, { errors: ["Vault is sealed"] }), "VaultSealed", /is sealed; unseal it$/],
      [
        "with a wrapped answer",
        reply(200, { wrap_info: { token: secretText("wrapping") } }),
        "VaultUnavailable",
        /contains no token/,
      ],
      ["with an answer that is none", new VaultReply(200, "<html>"), "VaultUnavailable", /is not from Vault/],
      ["without an answer", new HttpFailure("timeout"), "VaultUnavailable", /did not answer within 5s/],
    ];
    for (const [what, answer, reason, says] of answers) {
      it(`${what} report it`, async () => {
        vault.instead = () => answer;
        await failsAs(loginsOf().send(READER, READ), reason, says);
        assert.deepEqual(counts.logins, ["failure"]);
      });
    }

    it("by an AppRole or a token name what to check", async () => {
      const secretID = new SecretValue(secretText("secret-id"));
      vault.instead = () => reply(400, { errors: ["invalid role or secret ID"] });
      const appRole = loginsOf({ kind: "appRole", mount: "approle", roleID: "r", secretID });
      await failsAs(appRole.send(READER, READ), "VaultDenied", /^login at auth\/approle was refused; check the RoleID/);
      vault.instead = () => reply(403, { errors: ["permission denied", "invalid token"] });
      const token = loginsOf({ kind: "token", token: new SecretValue(secretText("token")) });
      await failsAs(
        token.send(READER, READ),
        "VaultDenied",
        /^the token of the connection has expired or was revoked; /,
      );
    });

    it("have the API server's error if the account gets no token", async () => {
      const requestToken = async () => {
        throw new Problem("Forbidden", "the account may not");
      };
      await failsAs(loginsOf(KUBERNETES, { requestToken }).send(READER, READ), "Forbidden", /^the account may not$/);
      assert.deepEqual(vault.requests, []);
    });
  });
});
