/** Who may scrape the metrics, and how many reviews that takes. */
import assert from "node:assert/strict";
import { ApiError } from "../../../src/kube/api-error.ts";
import { MetricsAccess } from "../../../src/observability/metrics-server.ts";
import { settled } from "../clock.ts";

describe("access to the metrics", () => {
  let asked: string[];
  let logged: string[];
  let access: MetricsAccess;
  /** Reviews wait for this promise. */
  let answers: Promise<void>;
  let isAway: boolean;
  const isAllowed = (username: string) => username.startsWith("scraper");

  beforeEach(() => {
    asked = [];
    logged = [];
    answers = Promise.resolve();
    isAway = false;
    const reviews = {
      async userOf(token: string) {
        asked.push(token);
        await answers;
        if (isAway) throw new ApiError("POST /tokenreviews", 403, "Forbidden");
        return token.startsWith("unknown") ? undefined : { username: token };
      },
      mayGetPath: async ({ username }: { username: string }, path: string) =>
        path === "/metrics" && isAllowed(username),
    };
    const log = { warn: (fields: object, text: string) => logged.push(`${text} ${JSON.stringify(fields)}`) };
    access = new MetricsAccess(reviews, log);
  });

  const check = (token: string) => access.check(`Bearer ${token}`);

  it("accepts only bearer tokens, and reviews nothing else", async () => {
    for (const header of [undefined, "", "Bearer", "Bearer ", "Basic scraper", "scraper", "Bearer a b"])
      assert.equal(await access.check(header), 401, header);
    assert.deepEqual(asked, []);
    assert.equal(await access.check("bearer  scraper"), 200);
  });

  it("caches each answer", async () => {
    for (const [token, status] of [
      ["scraper", 200],
      ["unknown", 401],
      ["other", 403],
    ] as const) {
      for (let n = 0; n < 3; n++) assert.equal(await check(token), status);
    }
    assert.deepEqual(asked, ["scraper", "unknown", "other"]);
  });

  it("reviews a token once if many requests with it arrive at the same time", async () => {
    assert.deepEqual(await Promise.all(Array.from({ length: 9 }, () => check("scraper"))), Array(9).fill(200));
    assert.deepEqual(asked, ["scraper"]);
  });

  it("reviews four unknown tokens at the same time, and ten in a second", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    answers = promise;
    const first = Array.from({ length: 9 }, (_, n) => check(`unknown-${n}`));
    await settled();
    assert.equal(asked.length, 4);
    resolve();
    assert.deepEqual((await Promise.all(first)).sort(), [...Array(4).fill(401), ...Array(5).fill(429)]);
    const later: number[] = [];
    for (let n = 9; n < 30; n++) later.push(await check(`unknown-${n}`));
    assert.deepEqual([asked.length, later.filter((status) => status === 429).length], [10, 15]);
  });

  it("keeps allowed tokens in the cache, however many others are denied", async () => {
    assert.equal(await check("scraper"), 200);
    for (let n = 0; n < 20; n++) await check(`unknown-${n}`);
    assert.equal(await check("scraper"), 200);
    assert.equal(asked.filter((token) => token === "scraper").length, 1);
  });

  it("reviews a new token from an address with an allowed one, however many arrive from other addresses", async () => {
    assert.equal(await access.check("Bearer scraper-1", "10.0.0.1"), 200);
    for (let n = 0; n < 20; n++) await access.check(`Bearer unknown-${n}`, "10.0.0.2");
    assert.equal(await access.check("Bearer scraper-2", "10.0.0.2"), 429);
    assert.equal(await access.check("Bearer scraper-2", "10.0.0.1"), 200);
    const more: number[] = [];
    for (let n = 20; n < 40; n++) more.push(await access.check(`Bearer unknown-${n}`, "10.0.0.1"));
    assert.equal(more.filter((status) => status === 401).length, 9);
  });

  it("answers 503 while the API server does not answer, caches nothing, and logs it once, without a token", async () => {
    isAway = true;
    for (let n = 0; n < 3; n++) assert.equal(await check("scraper"), 503);
    assert.equal(logged.length, 1);
    assert.match(logged[0] ?? "", /tokenreviews.*403 Forbidden/);
    assert.ok(!logged.join().includes("scraper"));
    isAway = false;
    assert.equal(await check("scraper"), 200);
  });
});
