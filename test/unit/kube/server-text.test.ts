/** Which failures and names are found in the API server's texts, and that a value that imitates such a text is not one. */
import assert from "node:assert/strict";
import { denialIn, failureIn, refusesDryRun } from "../../../src/kube/server-text.ts";

const MARKER = "hunter2-s3cr3t";
const CONVERSION = `conversion webhook for example.com/v2, Kind=Item failed: Post "https://127.0.0.1:1/": ${MARKER}`;
const UNREADY = "storage is (re)initializing: failed to list example.com/v1, Kind=Item: ";
const WEBHOOK = `Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: ${MARKER}`;
const POLICY = (text: string) => `items.example.com "x" is forbidden: ValidatingAdmissionPolicy ${text}`;

describe("an answer of the API server", () => {
  for (const [status, text, failure] of [
    [500, CONVERSION, { of: "conversion" }],
    [500, `conversion webhook for example.com/v2, Kind=Item returned 0 objects, expected 1`, { of: "conversion" }],
    [500, `Internal error occurred: ${CONVERSION}`, { of: "conversion" }],
    [
      500,
      `failed to convert new object (web/x; example.com/v1, Kind=Item) to proper version (example.com/v2): ${CONVERSION}`,
      { of: "conversion" },
    ],
    [429, UNREADY + CONVERSION, { of: "conversion" }],
    [500, WEBHOOK, { of: "webhook", webhook: "hook.example.com" }],
    [500, "illegal base64 data at input byte 3", { of: "decoding" }],
    [500, 'no kind "Secret" is registered for version "v9" in scheme "pkg/runtime/scheme.go:111"', { of: "decoding" }],
    [500, "proto: illegal wireType 7", { of: "decoding" }],
    [500, "request to convert CR from an invalid group/version: example.com/v0", { of: "decoding" }],
    [429, `${UNREADY}invalid character 'o' in literal null (expecting 'u')`, { of: "decoding" }],
  ] as const) {
    it(`with ${status} and "${text.split(MARKER)[0]?.slice(0, 90)}" is a failure that lasts`, () => {
      assert.deepEqual(failureIn(status, text), failure);
    });
  }

  for (const [status, text] of [
    [500, "etcdserver: request timed out"],
    [500, "etcdserver: leader changed"],
    [500, "context deadline exceeded"],
    [500, "Internal error occurred: context canceled"],
    [500, 'rpc error: code = Unavailable desc = error reading from server: read tcp "x"'],
    [500, ""],
    [503, CONVERSION],
    [504, WEBHOOK],
    [429, "storage is (re)initializing"],
    [429, "Too many requests, please try again later."],
  ] as const) {
    it(`with ${status} and "${text.slice(0, 60)}" is an outage`, () => {
      assert.equal(failureIn(status, text), undefined);
    });
  }

  it("is no failure because a value has its text", () => {
    for (const text of [CONVERSION, WEBHOOK, "illegal base64 data at input byte 3"]) {
      const quoted = `failed to create typed patch object (/one; v1, Kind=Service): .spec.l: expected list, got &{${text}}`;
      assert.equal(failureIn(500, quoted), undefined);
      assert.equal(failureIn(500, `spec.a: Invalid value: "${text}"`), undefined);
    }
  });

  it("names the policy and its binding, or the webhook, that denied a request", () => {
    assert.deepEqual(denialIn(POLICY(`'keys.example.com' with binding 'all' denied request: ${MARKER}`)), {
      policyKind: "ValidatingAdmissionPolicy",
      policy: "keys.example.com",
      binding: "all",
    });
    assert.deepEqual(denialIn(`policy 'adds' with binding 'all' denied request: expression '${MARKER}'`), {
      policyKind: "MutatingAdmissionPolicy",
      policy: "adds",
      binding: "all",
    });
    for (const end of [`: ${MARKER}`, " without explanation"])
      assert.deepEqual(denialIn(`admission webhook "hook.example.com" denied the request${end}`), {
        webhook: "hook.example.com",
      });
  });

  it("names nothing that is no name of Kubernetes, or is not at the beginning", () => {
    for (const text of [
      POLICY(`'${MARKER.toUpperCase()}' with binding 'all' denied request: no`),
      POLICY(`'a b' with binding 'all' denied request: no`),
      `x: ${POLICY("'keys' with binding 'all' denied request: no")}`,
      `admission webhook "${"a".repeat(300)}" denied the request: no`,
      `admission webhook "A value" denied the request: no`,
      `spec.a: Invalid value: "admission webhook "hook.example.com" denied the request: no"`,
      'pods "a" is forbidden: exceeded quota: q, requested: pods=1',
    ])
      assert.equal(denialIn(text), undefined, text);
    assert.equal(failureIn(500, `Internal error occurred: failed calling webhook "${MARKER} x": no`), undefined);
  });

  it("says that a webhook does not support dry runs", () => {
    assert.equal(refusesDryRun('admission webhook "hook.example.com" does not support dry run'), true);
    assert.equal(refusesDryRun(`x admission webhook "hook.example.com" does not support dry run`), false);
  });
});
