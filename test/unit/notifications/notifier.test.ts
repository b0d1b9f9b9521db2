/** Sends each notification once even if several bindings report it, and reports unusable URLs. */
import assert from "node:assert/strict";
import type { ObjectRef } from "../../../src/apimachinery/objects.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { Notifier, receiverUrl, resultOf } from "../../../src/notifications/notifier.ts";
import { fakeClient } from "../fakes.ts";
import { kubeObjectOf } from "../objects.ts";
import { notificationOf, rulesOf } from "./notifications.ts";

const FORBIDDEN = new ApiError("GET /secrets", 403, "Forbidden");

describe("a notifier", () => {
  it("passes each notification once to all receivers, and has metrics for all of them from the start", () => {
    const given: string[] = [];
    const client = fakeClient({
      get: async (_: unknown, { name }: ObjectRef) => {
        given.push(name);
        throw FORBIDDEN;
      },
    });
    const counts: string[] = [];
    const ignore = () => undefined;
    const notifier = new Notifier([rulesOf(), rulesOf({ name: "beside", url: { secret: "other", key: "url" } })], {
      client,
      ownNamespace: "inlay-system",
      notified: (receiver, result, count) => counts.push(`${receiver} ${result} ${count}`),
      log: { warn: ignore, error: ignore },
    });
    assert.deepEqual(
      counts,
      ["ops", "beside"].flatMap((name) => ["sent", "rejected", "failed", "dropped"].map((each) => `${name} ${each} 0`)),
    );
    for (const _ of ["one binding", "another"]) notifier.notify(notificationOf("web"));
    return notifier.stop(1_000).then(() => assert.deepEqual(given, ["inlay-notifications", "other"]));
  });
});

describe("the URL of a receiver", () => {
  const of = (value: string | undefined, insecure = false) => {
    const data = value === undefined ? {} : { ops: Buffer.from(value).toString("base64") };
    const client = fakeClient({ get: async () => kubeObjectOf({ kind: "Secret", data }) });
    return receiverUrl(client, "inlay-system", rulesOf({ insecure }));
  };

  it("is the value of the key in the Secret, without surrounding blanks", async () => {
    const url = await of("https://example.com/a?b=c\n");
    assert.ok(typeof url !== "string");
    assert.equal(url.reveal().href, "https://example.com/a?b=c");
  });

  it("may be http only if the receiver has insecure: true", async () => {
    assert.match(String(await of("http://example.com/a")), /an http URL.*insecure: true/);
    assert.ok(typeof (await of("http://example.com/a", true)) !== "string");
  });

  it("does not appear in the error when it can't be used", async () => {
    for (const bad of ["ftp://example.com/path-of-it", "path-of-it", "https://user:path-of-it@example.com/", ""]) {
      const said = await of(bad);
      assert.ok(typeof said === "string");
      assert.match(said, /^key ops of Secret inlay-system\/inlay-notifications (is|contains) /);
      assert.doesNotMatch(said, /path-of-it|example/);
    }
    assert.match(String(await of(undefined)), /has no key ops; add it$/);
    const refuse = (error: Error) => fakeClient({ get: () => Promise.reject(error) });
    const none = refuse(new ApiError("GET", 404, "NotFound"));
    assert.match(String(await receiverUrl(none, "inlay-system", rulesOf())), /^there is no Secret inlay-system/);
    assert.match(String(await receiverUrl(refuse(FORBIDDEN), "inlay-system", rulesOf())), /may not get/);
  });
});

describe("the answer of a receiver", () => {
  it("decides whether the message is retried", () => {
    for (const status of [200, 202, 204]) assert.equal(resultOf(status, undefined).outcome, "sent");
    for (const status of [408, 429, 500, 503]) assert.equal(resultOf(status, undefined).outcome, "retry");
    for (const status of [301, 307, 400, 401, 404, 410]) assert.equal(resultOf(status, undefined).outcome, "rejected");
    assert.deepEqual(resultOf(429, "7"), {
      outcome: "retry",
      why: "the receiver answered with status 429",
      afterMs: 7_000,
    });
    const date = new Date(Date.now() + 60_000).toUTCString();
    const { afterMs = 0 } = resultOf(503, date) as { afterMs?: number };
    assert.ok(afterMs > 50_000 && afterMs <= 60_000, `${afterMs}`);
    for (const none of ["soon", "-1", undefined, ["1"]]) assert.ok(!("afterMs" in resultOf(429, none)));
  });
});
