/** Reads of KV secrets engines: the requests, the contents, and the errors for unusable answers. */
import assert from "node:assert/strict";
import { Problem, type Reason } from "../../../src/apimachinery/problem.ts";
import { Connection } from "../../../src/vault/connection.ts";
import { VaultProblem } from "../../../src/vault/failures.ts";
import type { KvDataPlace, VaultAnswer } from "../../../src/vault/types.ts";
import { foundIn, secretText } from "../../controller/leak-detector.ts";
import {
  type Answer,
  type Counts,
  denied,
  json,
  login,
  READER,
  routes,
  servicesFor,
  settingsFor,
  startServer,
  type TestServer,
  textsIn,
} from "./server.ts";

const PLACE: KvDataPlace = { mount: "kv", path: "registry/s3", kv: 2 };
const FIRST: KvDataPlace = { ...PLACE, kv: 1 };
const [DATA, METADATA] = ["GET /v1/kv/data/registry/s3", "GET /v1/kv/metadata/registry/s3"];
const ENGINE = "GET /v1/sys/internal/ui/mounts/kv";
const LOGIN = "POST /v1/auth/kubernetes/login";

interface Written {
  values?: string;
  version?: number;
  created_time?: string;
  deletion_time?: string;
  destroyed?: boolean;
  /** Whether a time has passed by Vault's clock; by default that of this process. */
  isGone?: boolean;
  custom_metadata?: Record<string, string> | null;
}

describe("a KV secrets engine", () => {
  let server: TestServer;
  let connection: Connection;
  let counts: Counts;
  const answers: Record<string, Answer> = {};

  beforeEach(async () => {
    for (const key of Object.keys(answers)) delete answers[key];
    answers[LOGIN] = login(secretText("token"));
    server = await startServer((request, response) => routes(answers)(request, response));
    const services = servicesFor();
    counts = services.metrics;
    connection = new Connection(settingsFor(server.url), services);
  });
  afterEach(async () => {
    await connection.close();
    await server.stop();
  });

  /** Answers like Vault for a path of version 2: with data, and with metadata alone. */
  function write({ values = "{}", isGone: said, ...facts }: Written = {}): void {
    const all = { version: 1, created_time: "2026-01-01T00:00:00.1Z", deletion_time: "", destroyed: false, ...facts };
    const { version, custom_metadata = null, ...ofVersion } = all;
    const isPast = all.deletion_time !== "" && Date.parse(all.deletion_time) < Date.now();
    const isGone = said ?? (all.destroyed || isPast);
    const metadata = JSON.stringify({ ...ofVersion, version, custom_metadata });
    answers[DATA] = (_, response) =>
      json(response, `{"data":{"data":${isGone ? "null" : values},"metadata":${metadata}}}`, isGone ? 404 : 200);
    const data = {
      current_version: version,
      created_time: "2026-01-01T00:00:00Z",
      updated_time: ofVersion.created_time,
      custom_metadata,
      versions: { [version]: ofVersion },
    };
    answers[METADATA] = (_, response) => json(response, { data });
  }
  const read = (last?: VaultAnswer, place = PLACE) => connection.data(READER, place, last);
  /** The reads since the last call. */
  const requests = () => {
    const paths = server.paths();
    server.received.splice(0);
    return paths;
  };
  async function failsAs(sent: Promise<unknown>, reason: Reason, says: RegExp): Promise<Problem> {
    const error = await sent.then(
      () => assert.fail("it succeeds"),
      (thrown) => thrown,
    );
    assert.ok(error instanceof Problem, String(error));
    assert.equal(error.reason, reason);
    assert.match(error.message, says);
    assert.deepEqual(foundIn(`${error.message} ${error.stack} ${JSON.stringify(error)}`), []);
    return error;
  }

  it("returns strings as they are, and other values as JSON with numbers as Vault spells them", async () => {
    const password = secretText("password");
    write({
      values: `{"text":"${password}","line":"a\\nb","integer":12345678901234567890123,"decimal":1.10,"exponent":1e400,
        "yes":true,"none":null,"list":[1.0,"x"],"object":{"a":{"b":10000000000000000001}},"__proto__":"p"}`,
    });
    const { content } = await read();
    assert.deepEqual(Object.entries(textsIn(content?.data) ?? {}), [
      ["text", password],
      ["line", "a\nb"],
      ["integer", "12345678901234567890123"],
      ["decimal", "1.10"],
      ["exponent", "1e400"],
      ["yes", "true"],
      ["none", "null"],
      ["list", '[1.0,"x"]'],
      ["object", '{"a":{"b":10000000000000000001}}'],
      ["__proto__", "p"],
    ]);
  });

  it("is read by one request, and then by its metadata alone while nothing changes", async () => {
    write({ custom_metadata: { b: "2", a: "1" } });
    const first = await read();
    assert.deepEqual(requests(), [DATA]);
    assert.deepEqual(first.content?.custom.reveal(), { b: "2", a: "1" });
    write({ custom_metadata: { a: "1", b: "2" } });
    assert.equal(await read(first), first);
    assert.deepEqual(requests(), [METADATA]);
    assert.equal(counts.reads, 2);
  });

  const changes: [what: string, Written][] = [
    ["another version", { version: 2 }],
    [
      "the same version, written after the path was removed with its metadata",
      { created_time: "2026-02-01T00:00:00Z" },
    ],
    ["other custom metadata", { custom_metadata: { owner: "b" } }],
  ];
  for (const [what, change] of changes) {
    it(`is read again for ${what}`, async () => {
      write({ custom_metadata: { owner: "a" } });
      const first = await read();
      write({ custom_metadata: { owner: "a" }, values: '{"a":"b"}', ...change });
      requests();
      const second = await read(first);
      assert.deepEqual(requests(), [METADATA, DATA]);
      assert.notEqual(second.version, first.version);
      assert.deepEqual(textsIn(second.content?.data), { a: "b" });
      assert.equal(await read(second), second);
    });
  }

  it("has no content while the version is deleted or destroyed", async () => {
    write();
    const first = await read();
    for (const gone of [{ deletion_time: "2026-01-02T00:00:00Z" }, { destroyed: true }]) {
      write(gone);
      const second = await read(first);
      assert.equal(second.content, undefined);
      requests();
      assert.equal(await read(second), second);
      assert.deepEqual(requests(), [METADATA]);
      write();
      assert.equal((await read(second)).version, first.version);
    }
  });

  it("still has a version that will be deleted later", async () => {
    write({ deletion_time: "2999-01-01T00:00:00Z" });
    const first = await read();
    assert.notEqual(first.content, undefined);
    assert.equal(await read(first), first);
  });

  it("has no content once Vault reports it, whatever Inlay's clock says", async () => {
    const [past, future] = ["2000-01-01T00:00:00Z", "2999-01-01T00:00:00Z"];
    write();
    const first = await read();
    // Vault's clock is ahead.
    write({ deletion_time: future, isGone: true });
    const second = await read(first);
    assert.equal(second.content, undefined);
    requests();
    assert.equal(await read(second), second);
    assert.deepEqual(requests(), [METADATA]);
    // Vault's clock is behind.
    write({ deletion_time: past, isGone: false });
    const third = await read(second);
    assert.notEqual(third.content, undefined);
    assert.equal(await read(third), third);
    write({ deletion_time: past, isGone: true });
    assert.equal((await read(third)).content, undefined);
  });

  it("changes with the deletion time, and when a deleted version is destroyed", async () => {
    const versions: string[] = [];
    for (const change of [
      {},
      { deletion_time: "2999-01-01T00:00:00Z" },
      { deletion_time: "2026-01-02T00:00:00Z" },
      { deletion_time: "2026-01-03T00:00:00Z" },
      { deletion_time: "2026-01-03T00:00:00Z", destroyed: true },
    ]) {
      write(change);
      versions.push((await read()).version);
    }
    assert.equal(new Set(versions).size, versions.length);
  });

  it("has no content if the path does not exist, or has no data yet", async () => {
    const first = await read();
    assert.equal(first.content, undefined);
    assert.equal(await read(first), first);
    write();
    assert.notEqual((await read(first)).content, undefined);
    answers[METADATA] = (_, response) => json(response, { data: { current_version: 0, versions: {} } });
    delete answers[DATA];
    assert.equal((await read(first)).version, first.version);
  });

  it("returns the requested version", async () => {
    write({ version: 3, values: '{"a":"three"}' });
    answers[`${DATA}?version=3`] = answers[DATA] as Answer;
    const { content } = await read(undefined, { ...PLACE, version: 3 });
    assert.deepEqual([textsIn(content?.data), requests()], [{ a: "three" }, [`${DATA}?version=3`]]);
  });

  it("is read by its data if the policies deny the metadata, which is not requested again", async () => {
    write();
    answers[METADATA] = (_, response) => denied(response);
    const first = await read();
    assert.equal(await read(first), first);
    requests();
    assert.equal(await read(first), first);
    assert.deepEqual(requests(), [DATA]);
  });

  it("of version 1 has a version that changes with its content, and is not a plain hash", async () => {
    const value = secretText("value");
    answers["GET /v1/kv/registry/s3"] = (_, response) => json(response, { data: { a: value, b: 1 } });
    const first = await read(undefined, FIRST);
    assert.deepEqual(textsIn(first.content?.data), { a: value, b: "1" });
    assert.deepEqual(requests(), [ENGINE, "GET /v1/kv/registry/s3"]);
    assert.deepEqual(foundIn(first.version), []);
    assert.equal(await read(first, FIRST), first);
    answers["GET /v1/kv/registry/s3"] = (_, response) => json(response, { data: { a: value, b: 2 } });
    assert.notEqual((await read(first, FIRST)).version, first.version);
    delete answers["GET /v1/kv/registry/s3"];
    assert.equal((await read(first, FIRST)).content, undefined);
  });

  it("returns metadata without a request for data", async () => {
    write({ version: 7, custom_metadata: { owner: "a" } });
    const { content, version } = await connection.metadata(READER, PLACE);
    assert.deepEqual(textsIn(content?.data), {
      updated_time: "2026-01-01T00:00:00.1Z",
      created_time: "2026-01-01T00:00:00Z",
      current_version: "7",
      custom_metadata: '{"owner":"a"}',
    });
    assert.deepEqual([content?.custom.reveal(), requests()], [{ owner: "a" }, [METADATA]]);
    assert.equal((await connection.metadata(READER, PLACE)).version, version);
    delete answers[METADATA];
    assert.equal((await connection.metadata(READER, PLACE)).content, undefined);
  });

  it("gets exactly the requested path, whatever characters it contains", async () => {
    const odd = { mount: "a b/kv", path: "x?version=1/%2e%2e/#é", kv: 2 } as const;
    await read(undefined, odd);
    assert.equal(server.paths()[0], "GET /v1/a%20b/kv/data/x%3Fversion%3D1/%252e%252e/%23%C3%A9");
    for (const path of ["../x", "a/../../sys/raw", "a//b", "", ".", "a/"]) {
      await failsAs(read(undefined, { ...PLACE, path }), "ForbiddenPath", /is not a path in Vault/);
      await failsAs(read(undefined, { ...PLACE, mount: path }), "ForbiddenPath", /is not a path in Vault/);
    }
  });

  describe("of another type", () => {
    const other = "GET /v1/database/creds/admin";

    it("is not read: another engine might make a credential", async () => {
      const place = { mount: "database", path: "creds/admin", kv: 1 } as const;
      answers["GET /v1/sys/internal/ui/mounts/database"] = (_, response) =>
        json(response, { data: { type: "database" } });
      for (const kv of [1, 2] as const) {
        await failsAs(
          read(undefined, { ...place, kv }),
          "InvalidBinding",
          /^database\/.+ .+ KV secrets engine; .+ mount$/,
        );
      }
      assert.ok(!requests().includes(other));
    });

    it("is rejected if its answer has a lease", async () => {
      answers[other] = (_, response) => json(response, { lease_id: "x", data: { password: secretText("password") } });
      const place = { mount: "database", path: "creds/admin", kv: 1 } as const;
      await failsAs(read(undefined, place), "InvalidBinding", /KV secrets engine/);
    });

    it("is refused at a mount that is reserved for Vault", async () => {
      for (const mount of ["sys", "auth/token", "identity", "cubbyhole", "audit"]) {
        for (const kv of [1, 2] as const) {
          await failsAs(read(undefined, { mount, path: "x", kv }), "ForbiddenPath", /\w+\/ is reserved/);
        }
        await failsAs(connection.metadata(READER, { mount, path: "x" }), "ForbiddenPath", /reserved/);
      }
      assert.deepEqual(requests(), []);
    });

    it("never returns the token of Inlay's login", async () => {
      const token = secretText("token");
      answers[LOGIN] = login(token);
      answers["GET /v1/child/auth/token/lookup-self"] = (_, response) =>
        json(response, { data: { id: token, ttl: 60 } });
      const place = { mount: "child/auth/token", path: "lookup-self", kv: 1 } as const;
      await failsAs(read(undefined, place), "ForbiddenPath", /token of the login itself/);
    });
  });

  describe("of the other version", () => {
    const engine = (version: string | null) => {
      answers[ENGINE] = (_, response) =>
        json(response, { data: { type: "kv", options: version === null ? null : { version } } });
    };
    const onlyOnce = async (place: KvDataPlace, says: RegExp) => {
      for (let turn = 0; turn < 3; turn++) await failsAs(read(undefined, place), "InvalidBinding", says);
      assert.equal(requests().filter((each) => each === ENGINE).length, 1);
    };

    it("is reported if nothing is found", async () => {
      engine(null);
      await onlyOnce(PLACE, /^kv\/registry\/s3: kv is a secrets engine of KV version 1; set kv: 1$/);
      await failsAs(connection.metadata(READER, PLACE), "InvalidBinding", /version 1; it has no metadata/);
    });

    it("is reported if Vault denies the path", async () => {
      engine("2");
      answers["GET /v1/kv/registry/s3"] = (_, response) => denied(response);
      await onlyOnce(FIRST, /version 2; set kv: 2$/);
    });

    it("is reported if Vault reports it, or answers without a version", async () => {
      const warning = `Invalid path for a versioned K/V secrets engine. ${secretText("quoted")}`;
      answers["GET /v1/kv/registry/s3"] = (_, response) => json(response, { data: null, warnings: [warning] }, 404);
      answers[DATA] = (_, response) => json(response, { data: { a: secretText("value") } });
      await failsAs(read(undefined, FIRST), "InvalidBinding", /set kv: 2$/);
      await failsAs(read(), "InvalidBinding", /set kv: 1$/);
    });
  });

  describe("that can't be read", () => {
    const value = secretText("value");
    const body = { errors: [`1 error occurred: ${value}`] };
    const cases: [what: string, answer: Answer, reason: Reason, says: RegExp][] = [
      [
        "denies access",
        (_, response) => denied(response, value),
        "VaultDenied",
        /^kv\/registry\/s3: .*login at auth\/kubernetes as role inlay-registry; .*"kv\/data\/registry\/s3"/,
      ],
      [
        "is sealed",
        (_, response) => json(response, { errors: ["Vault is sealed", value] }, 503),
        "VaultSealed",
        /^kv\/registry\/s3: 127\.0\.0\.1:\d+ is sealed; unseal it$/,
      ],
      ["limits requests", (_, response) => json(response, body, 429), "VaultThrottled", /limits requests/],
      ["fails", (_, response) => json(response, body, 500), "VaultUnavailable", /status 500/],
      ["is away behind a proxy", (_, response) => json(response, `<p>${value}`, 503), "VaultUnavailable", /status 503/],
      [
        "is a DR secondary",
        (_, response) => json(response, body, 472),
        "VaultUnavailable",
        /disaster recovery secondary/,
      ],
      [
        "is a standby without an active server",
        (_, response) => json(response, { errors: ["local node not active but active cluster node not found"] }, 500),
        "VaultUnavailable",
        /is a standby/,
      ],
      ["does not take the request", (_, response) => json(response, body, 400), "VaultUnavailable", /status 400/],
      [
        "is not there behind a proxy",
        (_, response) => json(response, `<p>${value}`, 404),
        "VaultUnavailable",
        /not from Vault/,
      ],
      [
        "is something else with JSON",
        (_, response) => json(response, { message: value }, 404),
        "VaultUnavailable",
        /not from Vault/,
      ],
      [
        "answers with what is no JSON",
        (_, response) => json(response, `{"data": ${value}`),
        "VaultUnavailable",
        /not from Vault/,
      ],
      [
        "answers with what is no text",
        (_, response) => response.end(Buffer.of(0xff, 0xfe)),
        "VaultUnavailable",
        /not from Vault/,
      ],
      ["ends the connection", (_, response) => response.destroy(), "VaultUnavailable", /ended the connection/],
    ];
    for (const [what, answer, reason, says] of cases) {
      it(`has its own error if the server ${what}`, async () => {
        write();
        const first = await read();
        answers[DATA] = answers[METADATA] = answer;
        answers["GET /v1/auth/token/lookup-self"] = (_, response) => json(response, { data: { ttl: 60 } });
        await failsAs(read(), reason, says);
        if (reason !== "VaultDenied") await failsAs(read(first), reason, says);
      });
    }

    it("is an error if a value nests too deep", async () => {
      write({ values: `{"a":${"[".repeat(300)}${"]".repeat(300)}}` });
      await failsAs(read(), "TooDeep", /^kv\/registry\/s3: /);
    });

    it("returns when the server wants the next request", async () => {
      answers[DATA] = (_, response) => json(response, {}, 429, { "retry-after": "7" });
      const problem = await failsAs(read(), "VaultThrottled", /limits requests/);
      assert.ok(problem instanceof VaultProblem && problem.retryAfterMs === 7_000);
    });

    it("names what to check if the server stops answering", async () => {
      write();
      await read();
      await server.stop();
      await failsAs(read(), "VaultUnavailable", /^kv\/registry\/s3: 127\.0\.0\.1:\d+ refuses connections; /);
    });
  });
});
