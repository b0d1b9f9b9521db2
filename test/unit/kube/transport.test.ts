/** Requests and streams over a real connection: results, repetitions, and cleanup. */
import assert from "node:assert/strict";
import type { ServerHttp2Stream } from "node:http2";
import { ApiError } from "../../../src/kube/api-error.ts";
import { CONTROLLER } from "../../../src/kube/identity.ts";
import { type Request, Transport } from "../../../src/kube/transport.ts";
import { eventually } from "../../controller/eventually.ts";
import { json, makeCertificate, startServer, type TestServer } from "./server.ts";

const SECRET = "hunter2-s3cr3t";
const get = (more: Partial<Request> = {}): Request => ({ method: "GET", path: "/x", identity: CONTROLLER, ...more });
const nothing = () => {};
const unread = function* (line: string) {
  yield;
  return line;
};
/** The deadline of a request without its own. */
const USUAL_DEADLINE_MS = 15_000;

describe("the transport", () => {
  let certificate: { cert: Buffer; key: Buffer };
  let server: TestServer;
  let transport: Transport;
  before(async () => {
    certificate = await makeCertificate();
  });
  beforeEach(async () => {
    server = await startServer(certificate, json({}));
    transport = new Transport(server.credentials);
  });
  afterEach(async () => {
    await transport.close();
    await server.stop();
  });

  const fails = (request: Request, reason: string, status = 0) =>
    assert.rejects(transport.request(request), (error) => {
      assert.ok(error instanceof ApiError, String(error));
      assert.deepEqual([error.status, error.reason], [status, reason]);
      assert.ok(!`${error.stack}${error.cause}`.includes(SECRET));
      return true;
    });

  describe("a request", () => {
    it("returns the server's answer, parsed", async () => {
      server.answer = json({ items: ["ä", 1] });
      assert.deepEqual(await transport.request(get()), { items: ["ä", 1] });
      server.answer = json("");
      assert.equal(await transport.request(get()), undefined);
    });

    it("refuses an answer with too many levels if it must be whole, and cuts others", async () => {
      const deep = `${'{"a":'.repeat(9_000)}1${"}".repeat(9_000)}`;
      server.answer = (stream) => {
        stream.respond({ ":status": 200 });
        stream.end(`{"name":"x","deep":${deep}}`);
      };
      await fails(get({ isWhole: true }), "TooDeep", 200);
      assert.equal((await transport.request<{ name: string }>(get())).name, "x");
    });

    it("tracks the server's clock, whatever the local clock says", async () => {
      const date = new Date(Date.now() + 3_600_000);
      assert.ok(transport.serverTime() < date.getTime() - 1_800_000);
      server.answer = (stream) => {
        stream.respond({ ":status": 200, date: date.toUTCString() });
        stream.end("{}");
      };
      await transport.request(get());
      assert.ok(transport.serverTime() > date.getTime() - 1_800_000);
    });

    it("is sent with its method, query, body, type and authentication", async () => {
      await transport.request({
        method: "PATCH",
        path: "/api/v1/x?force=true",
        identity: CONTROLLER,
        body: '{"a":"ä"}',
        contentType: "application/apply-patch+yaml",
        accept: "application/json;as=PartialObjectMetadata",
      });
      const [one] = server.received;
      assert.ok(one);
      const { method, path, body, headers } = one;
      assert.deepEqual([method, path, body], ["PATCH", "/api/v1/x?force=true", '{"a":"ä"}']);
      const { accept, authorization, "content-type": contentType } = headers;
      assert.deepEqual(
        { accept, authorization, contentType },
        {
          accept: "application/json;as=PartialObjectMetadata",
          authorization: "Bearer t",
          contentType: "application/apply-patch+yaml",
        },
      );
    });

    it("impersonates its account, but not for the controller itself", async () => {
      await transport.request(get({ identity: "system:serviceaccount:registry:inlay" }));
      await transport.request(get());
      const sent = server.received.map(({ headers }) =>
        Object.entries(headers).filter(([name]) => name.startsWith("impersonate")),
      );
      assert.deepEqual(sent, [[["impersonate-user", "system:serviceaccount:registry:inlay"]], []]);
    });

    it("includes the path of the server's URL", async () => {
      const { server: url, ...rest } = server.credentials;
      const under = new Transport({ ...rest, server: new URL(`${url.origin}/k8s/clusters/c-1/`) });
      await under.request(get({ path: "/api/v1/x" }));
      await under.close();
      assert.equal(server.received[0]?.path, "/k8s/clusters/c-1/api/v1/x");
    });

    it("fails with the server's status and reason, and none of its text", async () => {
      server.answer = json({ reason: "Invalid", message: `Invalid value: ${SECRET}` }, 422);
      await fails(get(), "Invalid", 422);
      server.answer = json("404 page not found", 404);
      await fails(get(), "Error", 404);
    });

    it("fails with none of its text if an answer is not JSON", async () => {
      server.answer = json(`${SECRET} { cut`);
      await fails(get(), "BrokenAnswer");
    });

    it("fails with a code if no server listens, or the certificate is wrong", async () => {
      const other = await makeCertificate();
      const suspicious = new Transport({ ...server.credentials, tls: { ca: other.cert } });
      await assert.rejects(suspicious.request(get()), (error) => error instanceof ApiError && error.status === 0);
      assert.equal(server.received.length, 0);
      await suspicious.close();
      await server.stop();
      await fails(get({ method: "POST" }), "ECONNREFUSED");
    });

    it("that gets a 429 is repeated after the time that the server asks for", async () => {
      const times: number[] = [];
      server.answer = (stream, request) => {
        times.push(performance.now());
        const answer = times.length === 1 ? json({}, 429, { "retry-after": "1" }) : json({ ok: true });
        answer(stream, request);
      };
      assert.deepEqual(await transport.request(get({ method: "POST", body: "{}" })), { ok: true });
      const [first = 0, second = 0] = times;
      assert.ok(second - first >= 990, `${second - first} ms`);
    });

    it("that would have to wait past its deadline fails at once with the refusal", async () => {
      server.answer = json({ reason: "TooManyRequests" }, 429, { "retry-after": "60" });
      await fails(get(), "TooManyRequests", 429);
      assert.equal(server.received.length, 1);
    });

    it("that only reads or is safe to repeat is repeated when its connection is cut", async () => {
      for (const method of ["GET", "PUT", "PATCH"] as const) {
        server.received.length = 0;
        server.answer = (stream, request) => {
          if (server.received.length === 1) stream.session?.destroy();
          else json({ ok: true })(stream, request);
        };
        const body = method === "GET" ? {} : { body: "{}" };
        assert.deepEqual(await transport.request(get({ method, ...body })), { ok: true });
        assert.equal(server.received.length, 2);
      }
    });

    it("that creates is not repeated when its connection is cut: it may have succeeded", async () => {
      server.answer = (stream) => stream.session?.destroy();
      await assert.rejects(
        transport.request(get({ method: "POST", body: "{}" })),
        (error) => error instanceof ApiError && error.status === 0,
      );
      assert.equal(server.received.length, 1);
    });

    it("without an answer fails at its deadline, and the next one uses a new connection", async () => {
      server.answer = json({ ok: true });
      // Opens the connection: on a busy machine, that may take longer than the deadline.
      await transport.request(get());
      server.answer = nothing;
      const start = performance.now();
      await fails(get({ deadlineMs: 150 }), "DeadlineExceeded");
      const took = performance.now() - start;
      assert.ok(took >= 140 && took < USUAL_DEADLINE_MS, `${took} ms`);
      const { connections } = server;
      server.answer = json({ ok: true });
      assert.deepEqual(await transport.request(get()), { ok: true });
      assert.equal(server.connections, connections + 1);
    });

    it("fails at its deadline too while it waits behind more requests than a connection allows", async () => {
      server.answer = nothing;
      const start = performance.now();
      const requests = Array.from({ length: 250 }, () =>
        assert.rejects(transport.request(get({ deadlineMs: 400 })), { name: "ApiError", status: 0 }),
      );
      await Promise.all(requests);
      assert.ok(performance.now() - start < USUAL_DEADLINE_MS, `${performance.now() - start} ms`);
      server.answer = json({ ok: true });
      assert.deepEqual(await transport.request(get()), { ok: true });
    });

    it("ends at once when it is aborted, answered or not", async () => {
      server.answer = nothing;
      const abort = new AbortController();
      const ended = assert.rejects(transport.request(get(), abort.signal), { name: "ApiError", reason: "Aborted" });
      await eventually(() => assert.equal(server.openStreams, 1));
      abort.abort();
      await ended;
      await assert.rejects(transport.request(get(), abort.signal), { reason: "Aborted" });
      await eventually(() => assert.equal(server.openStreams, 0));
    });
  });

  describe("a large answer", () => {
    const MIB = 1024 ** 2;
    const NAMESPACE = "/api/v1/namespaces/registry/configmaps";
    /** An object of so many MiB, in pieces. */
    const sized =
      (mib: number, end = true): TestServer["answer"] =>
      (stream) => {
        stream.respond({ ":status": 200 });
        const text = JSON.stringify({ data: "x".repeat(mib * MIB) });
        for (let from = 0; from < text.length; from += MIB) stream.write(text.slice(from, from + MIB));
        if (end) stream.end();
      };

    it("is read up to 16 MiB, or the limit of the request, and counted beyond that", async () => {
      let refused = 0;
      const counting = new Transport(server.credentials, { tooLarge: () => refused++ });
      server.answer = sized(15);
      const { data } = await counting.request<{ data: string }>(get());
      assert.equal(data.length, 15 * MIB);
      // Neither of these ends.
      server.answer = sized(17, false);
      await assert.rejects(counting.request(get()), { status: 200, reason: "TooLarge" });
      server.answer = sized(3, false);
      await assert.rejects(counting.request(get({ maxCharacters: 2 * MIB })), { reason: "TooLarge" });
      await eventually(async () => assert.equal(server.openStreams, 0));
      assert.equal(refused, 1);
      server.answer = json({ ok: true });
      assert.deepEqual(await counting.request(get()), { ok: true });
      await counting.close();
    });

    it("that explains an error counts by its status", async () => {
      server.answer = json({ reason: "Invalid", message: "x".repeat(2 * MIB) }, 422);
      await fails(get(), "Error", 422);
    });

    it("has bounded managedFields where they are needed, and lacks the owned fields elsewhere", async () => {
      const owned = Object.fromEntries(Array.from({ length: 80_000 }, (_, n) => [`f:k${n}`, {}]));
      server.answer = json({ metadata: { managedFields: [{ manager: "m", fieldsV1: { "f:data": owned } }] } });
      await fails(get(), "TooManyOwners", 200);
      assert.deepEqual(await transport.request(get({ form: "values" })), {
        metadata: { managedFields: [{ manager: "m", fieldsV1: { "f:data": {} } }] },
      });
      server.answer = json({ metadata: { managedFields: Array(501).fill({ manager: "m" }) } });
      await fails(get(), "TooManyOwners", 200);
    });

    it("waits for others of its namespace, without delay for other namespaces, small answers and watches", async () => {
      const held: (() => void)[] = [];
      const large: TestServer["answer"] = (stream) => {
        stream.respond({ ":status": 200 });
        stream.write(`"${"x".repeat(MIB)}`);
        held.push(() => stream.end('"'));
      };
      server.answer = large;
      // The first two have permits, and do not end. The others are paused.
      const first = Array.from({ length: 12 }, () => transport.request<string>(get({ path: NAMESPACE })));
      await eventually(async () => assert.equal(held.length, 12));
      server.answer = sized(2);
      const other = get({ path: NAMESPACE.replace("registry", "other"), deadlineMs: 5_000 });
      for (let n = 0; n < 3; n++) assert.equal((await transport.request<{ data: string }>(other)).data.length, 2 * MIB);
      server.answer = json({ ok: true });
      for (let n = 0; n < 20; n++) await transport.request(get({ path: NAMESPACE, deadlineMs: 5_000 }));
      for (const end of held) end();
      for (const answer of await Promise.all(first)) assert.equal(answer.length, MIB);
    });

    it("fails at its deadline while it waits, and then gives its turn to the next one, on the same connections", async () => {
      const held: (() => void)[] = [];
      server.answer = (stream) => {
        stream.respond({ ":status": 200 });
        stream.write(`"${"x".repeat(MIB)}`);
        held.push(() => stream.end('"'));
      };
      const first = [0, 1].map(() => transport.request<string>(get({ path: NAMESPACE })));
      await eventually(async () => assert.equal(held.length, 2));
      const { connections } = server;
      await fails(get({ path: NAMESPACE, deadlineMs: 300 }), "DeadlineExceeded");
      const next = transport.request<string>(get({ path: NAMESPACE }));
      await eventually(async () => assert.equal(held.length, 4));
      for (const end of held) end();
      for (const answer of await Promise.all([...first, next])) assert.equal(answer.length, MIB);
      assert.equal(server.connections, connections);
    });

    it("is parsed in short turns on behalf of its namespace", async () => {
      const turns: string[] = [];
      let longest = 0;
      const steps = async <T>(name: string, work: Generator<unknown, T>) => {
        turns.push(name);
        for (;;) {
          const from = performance.now();
          const step = work.next();
          longest = Math.max(longest, performance.now() - from);
          if (step.done) return step.value;
        }
      };
      const quick = async <T>(name: string, work: () => T) => {
        turns.push(`${name}, quick`);
        return work();
      };
      const parsing = new Transport(server.credentials, { cpu: { quick, steps } });
      const items = Array.from({ length: 3_000 }, (_, n) => ({ [`k${n}`]: "x".repeat(500) }));
      server.answer = json({ items });
      const list = { path: NAMESPACE, form: "list" as const };
      const { items: read } = await parsing.request<{ items: unknown[] }>(get(list));
      assert.equal(read.length, items.length);
      assert.deepEqual([...new Set(turns)], ["registry"]);
      const account = { path: "/api/v1/configmaps", identity: "system:serviceaccount:store:inlay" };
      await parsing.request(get({ ...list, ...account }));
      assert.equal(turns.at(-1), "store");
      const { length } = turns;
      // What the controller reads for all namespaces is no namespace's share.
      await parsing.request(get({ ...list, path: "/api/v1/configmaps" }));
      assert.equal(turns.length, length);
      server.answer = (stream) => {
        stream.respond({ ":status": 200 });
        stream.end("small\n");
      };
      const { signal } = new AbortController();
      for (const path of [NAMESPACE, "/api/v1/configmaps"])
        for await (const line of parsing.lines(get({ path }), signal, nothing, unread)) turns.push(line);
      assert.deepEqual(turns.slice(length), ["registry, quick", "small", "small"]);
      assert.ok(longest < 500, `${longest} ms`);
      await parsing.close();
    });
  });

  describe("a stream of lines", () => {
    /** Begins an answer and gives its stream to the test. */
    function held(): Promise<ServerHttp2Stream> {
      const { promise, resolve } = Promise.withResolvers<ServerHttp2Stream>();
      server.answer = (stream) => {
        stream.respond({ ":status": 200 });
        resolve(stream);
      };
      return promise;
    }

    async function collect(lines: AsyncIterable<string>): Promise<string[]> {
      const all: string[] = [];
      for await (const line of lines) all.push(line);
      return all;
    }

    const never = new AbortController().signal;

    it("returns each line as soon as it is complete, for any chunks, until the server ends the stream", async () => {
      const opened = held();
      const lines = transport.lines(get(), never, nothing, unread);
      const first = lines.next();
      const stream = await opened;
      const text = Buffer.from('{"a":"ä\u{1f511}"}\n{"b":1}\n\nlast\n');
      // A byte at a time through the first line, then two lines in one piece.
      for (const byte of text.subarray(0, 15)) {
        stream.write(Buffer.of(byte));
        await new Promise(setImmediate);
      }
      assert.equal((await first).value, '{"a":"ä\u{1f511}"}');
      stream.end(text.subarray(15));
      assert.deepEqual(await collect(lines), ['{"b":1}', "", "last"]);
    });

    it("calls onOpen when it begins, before its first line", async () => {
      const opened = held();
      const { promise: begun, resolve } = Promise.withResolvers<void>();
      const all = collect(transport.lines(get(), never, resolve, unread));
      const stream = await opened;
      await begun;
      stream.end("x\n");
      assert.deepEqual(await all, ["x"]);
    });

    it("returns the beginning of a line of more than 16 MiB, and all of the others", async () => {
      const long = 18 * 1024 ** 2;
      server.answer = (stream) => {
        stream.respond({ ":status": 200 });
        stream.end(`first\n${"x".repeat(long)}\nlast\n`);
      };
      const lengths = (await collect(transport.lines(get(), never, nothing, unread))).map(({ length }) => length);
      const [first, cut = 0, last] = lengths;
      assert.deepEqual([lengths.length, first, last], [3, 5, 4]);
      assert.ok(cut > 16 * 1024 ** 2 && cut < 17 * 1024 ** 2, `${cut}`);
    });

    it("that the server refuses fails like a request, and never begins", async () => {
      server.answer = json({ reason: "Forbidden" }, 403);
      const lines = transport.lines(get(), never, () => assert.fail("it began"), unread);
      await assert.rejects(collect(lines), { name: "ApiError", status: 403, reason: "Forbidden" });
    });

    it("that does not begin fails at its deadline, and the next one uses a new connection", async () => {
      const line: typeof server.answer = (stream) => {
        stream.respond({ ":status": 200 });
        stream.end("x\n");
      };
      // Opens the connection, which may take longer than the deadline.
      server.answer = line;
      await collect(transport.lines(get(), never, nothing, unread));
      server.answer = nothing;
      await assert.rejects(collect(transport.lines(get({ deadlineMs: 150 }), never, nothing, unread)), {
        reason: "DeadlineExceeded",
      });
      const { connections } = server;
      server.answer = line;
      assert.deepEqual(await collect(transport.lines(get(), never, nothing, unread)), ["x"]);
      assert.equal(server.connections, connections + 1);
    });

    it("continues past the deadline after it has begun", async () => {
      const opened = held();
      const lines = transport.lines(get({ deadlineMs: 1_000 }), never, nothing, unread);
      const first = lines.next();
      const stream = await opened;
      stream.write("a\n");
      assert.equal((await first).value, "a");
      const second = lines.next();
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      stream.end("b\n");
      assert.equal((await second).value, "b");
    });

    it("fails when it is cut", async () => {
      for (const cut of [
        (stream: ServerHttp2Stream) => stream.session?.destroy(),
        (stream: ServerHttp2Stream) => stream.destroy(new Error("reset")),
      ]) {
        const opened = held();
        const lines = transport.lines(get(), never, nothing, unread);
        const first = lines.next();
        const stream = await opened;
        stream.write("a\n");
        assert.equal((await first).value, "a");
        const rest = collect(lines);
        cut(stream);
        await assert.rejects(rest, (error) => error instanceof ApiError && error.status === 0);
      }
    });

    it("ends on abort before it begins, while it is silent and in the middle of a line, and leaves no stream", async () => {
      for (const begins of [undefined, "", "half a li"]) {
        const { promise: came, resolve } = Promise.withResolvers<void>();
        server.answer = (stream) => {
          if (begins !== undefined) stream.respond({ ":status": 200 });
          if (begins) stream.write(begins);
          resolve();
        };
        const abort = new AbortController();
        const ended = assert.rejects(collect(transport.lines(get(), abort.signal, nothing, unread)), {
          name: "ApiError",
        });
        await came;
        abort.abort();
        await ended;
        await eventually(() => assert.equal(server.openStreams, 0));
      }
    });

    it("ends on abort in the tick of its sending, and the later end of its connection causes no error", async () => {
      server.answer = (stream) => {
        stream.respond({ ":status": 200 });
        stream.write("one\n");
      };
      const connects = transport.lines(get(), never, nothing, unread);
      await connects.next();
      await connects.return();
      for (let ticks = 1; ticks <= 10; ticks++) {
        const stop = new AbortController();
        const first = transport.lines(get(), stop.signal, nothing, unread).next();
        for (let i = 0; i < ticks; i++) await undefined;
        stop.abort();
        await assert.rejects(first, /Aborted/);
      }
      await eventually(() => assert.ok(server.received.length > 1));
      await eventually(() => assert.equal(server.openStreams, 0));
    });

    it("ends when its reader stops", async () => {
      const opened = held();
      const lines = transport.lines(get(), never, nothing, unread);
      const first = lines.next();
      (await opened).write("a\nb\n");
      assert.equal((await first).value, "a");
      await lines.return();
      await eventually(() => assert.equal(server.openStreams, 0));
    });

    it("does not delay requests, even if many streams are open", async () => {
      server.answer = (stream, { path }) => {
        if (path === "/watch") stream.respond({ ":status": 200 });
        else json({ ok: true })(stream, { method: "", path, headers: {}, body: "" });
      };
      const abort = new AbortController();
      let open = 0;
      const streams = Array.from({ length: 150 }, () =>
        collect(transport.lines(get({ path: "/watch" }), abort.signal, () => open++, unread)).catch(nothing),
      );
      await eventually(() => assert.equal(open, 150));
      assert.deepEqual(await transport.request(get({ deadlineMs: 2_000 })), { ok: true });
      abort.abort();
      await Promise.all(streams);
    });
  });

  describe("close()", () => {
    async function open(count: number, signal: AbortSignal) {
      server.answer = (stream) => stream.respond({ ":status": 200 });
      let begun = 0;
      const streams = Array.from({ length: count }, async () => {
        for await (const _ of transport.lines(get(), signal, () => begun++, unread)) assert.fail("a line");
      });
      const ended = Promise.allSettled(streams);
      await eventually(() => assert.equal(begun, count));
      return { ended };
    }

    it("closes every connection under open streams and requests, which fail", async () => {
      const { ended } = await open(3, new AbortController().signal);
      server.answer = nothing;
      const request = assert.rejects(transport.request(get()), { name: "ApiError", status: 0 });
      await eventually(() => assert.equal(server.openStreams, 4));
      await transport.close();
      await request;
      for (const { status } of await ended) assert.equal(status, "rejected");
      await eventually(() => assert.equal(server.sessions.size, 0));
    });

    it("takes no time after 150 streams were aborted", async () => {
      const abort = new AbortController();
      const { ended } = await open(150, abort.signal);
      abort.abort();
      await transport.close();
      await ended;
      await eventually(() => assert.equal(server.sessions.size, 0));
    });

    it("prevents further requests", async () => {
      await transport.close();
      await assert.rejects(transport.request(get({ method: "POST" })), { name: "ApiError", status: 0 });
      assert.equal(server.received.length, 0);
    });
  });

  it("fails a request as an API error if its credentials are not available", async () => {
    const broken = new Transport({
      ...server.credentials,
      headers: () => Promise.reject(Object.assign(new Error(`no token ${SECRET}`), { code: "ENOENT" })),
    });
    await assert.rejects(broken.request(get()), { name: "ApiError", status: 0, message: "GET /x: no answer ENOENT" });
    await broken.close();
  });
});
