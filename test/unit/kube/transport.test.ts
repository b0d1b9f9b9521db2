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
      const lines = transport.lines(get(), never);
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
      const all = collect(transport.lines(get(), never, resolve));
      const stream = await opened;
      await begun;
      stream.end("x\n");
      assert.deepEqual(await all, ["x"]);
    });

    it("that the server refuses fails like a request, and never begins", async () => {
      server.answer = json({ reason: "Forbidden" }, 403);
      const lines = transport.lines(get(), never, () => assert.fail("it began"));
      await assert.rejects(collect(lines), { name: "ApiError", status: 403, reason: "Forbidden" });
    });

    it("that does not begin fails at its deadline, and the next one uses a new connection", async () => {
      server.answer = nothing;
      await assert.rejects(collect(transport.lines(get({ deadlineMs: 150 }), never)), { reason: "DeadlineExceeded" });
      const { connections } = server;
      server.answer = (stream) => {
        stream.respond({ ":status": 200 });
        stream.end("x\n");
      };
      assert.deepEqual(await collect(transport.lines(get(), never)), ["x"]);
      assert.equal(server.connections, connections + 1);
    });

    it("continues past the deadline after it has begun", async () => {
      const opened = held();
      const lines = transport.lines(get({ deadlineMs: 1_000 }), never);
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
        const lines = transport.lines(get(), never);
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
        const ended = assert.rejects(collect(transport.lines(get(), abort.signal)), { name: "ApiError" });
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
      const connects = transport.lines(get(), never);
      await connects.next();
      await connects.return();
      for (let ticks = 1; ticks <= 10; ticks++) {
        const stop = new AbortController();
        const first = transport.lines(get(), stop.signal).next();
        for (let i = 0; i < ticks; i++) await undefined;
        stop.abort();
        await assert.rejects(first, /Aborted/);
      }
      await eventually(() => assert.ok(server.received.length > 1));
      await eventually(() => assert.equal(server.openStreams, 0));
    });

    it("ends when its reader stops", async () => {
      const opened = held();
      const lines = transport.lines(get(), never);
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
        collect(transport.lines(get({ path: "/watch" }), abort.signal, () => open++)).catch(nothing),
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
        for await (const _ of transport.lines(get(), signal, () => begun++)) assert.fail("a line");
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
