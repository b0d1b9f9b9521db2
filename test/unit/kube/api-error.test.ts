/** Which parts of a refusal are kept, and that the API server's text, which quotes values, is not. */
import assert from "node:assert/strict";
import { inspect } from "node:util";
import { ApiError, isOutdated, isStatus } from "../../../src/kube/api-error.ts";

const MARKER = "hunter2-s3cr3t";

function answered(status: number, body: unknown, retryAfter?: string): ApiError {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return ApiError.fromAnswer("PATCH /api/v1/namespaces/a/secrets/b", status, text, retryAfter);
}

describe("an API error", () => {
  it("keeps the status code, the reason and the request", () => {
    const error = answered(404, { kind: "Status", reason: "NotFound", code: 404 });
    assert.deepEqual([error.status, error.reason, error.name], [404, "NotFound", "ApiError"]);
    assert.equal(error.message, "PATCH /api/v1/namespaces/a/secrets/b: 404 NotFound");
  });

  it("keeps none of the server's text, in any field", () => {
    const invalid = answered(422, {
      kind: "Status",
      message: `spec.a: Invalid value: "${MARKER}": must be a number`,
      reason: "Invalid",
      details: {
        name: "b",
        kind: "secrets",
        group: MARKER,
        causes: [
          { reason: "FieldValueInvalid", message: `Invalid value: "${MARKER}"`, field: `spec["${MARKER}"]` },
          { reason: "FieldValueInvalid", message: `"${MARKER}": field is immutable`, field: `data["${MARKER}"]` },
          { reason: "FieldManagerConflict", message: `conflict with "kubectl" using ${MARKER}`, field: ".spec.a" },
        ],
      },
      metadata: { note: MARKER },
      code: 422,
    });
    const broken = answered(500, `expected list, got ${MARKER}`);
    const odd = answered(500, { reason: `Internal error: ${MARKER}`, message: MARKER });
    for (const error of [invalid, broken, odd]) {
      for (const printed of [
        String(error),
        JSON.stringify(error),
        inspect(error, { depth: 20, showHidden: true }),
        `${error.stack}${error.cause}`,
      ]) {
        assert.ok(!printed.includes(MARKER), printed);
      }
    }
    assert.deepEqual([broken.reason, odd.reason], ["Error", "Error"]);
  });

  it("detects a changed object by a conflict or an immutable uid", () => {
    const causes = (field: string) => ({ causes: [{ message: 'Invalid value: "x": field is immutable', field }] });
    assert.equal(isOutdated(answered(409, { reason: "Conflict" })), true);
    assert.equal(isOutdated(answered(422, { reason: "Invalid", details: causes("metadata.uid") })), true);
    assert.equal(isOutdated(answered(422, { reason: "Invalid", details: causes("data") })), false);
  });

  it("finds immutable fields even if many quotes of a message are unclosed", () => {
    for (const quotes of ['"\\'.repeat(100_000), '\\"'.repeat(100_000)]) {
      const causes = [`field is immutable: ${quotes}`, quotes].map((message, place) => ({
        message,
        field: `spec.${place}`,
      }));
      const { immutable } = answered(422, { reason: "Invalid", details: { causes } });
      assert.deepEqual(immutable.reveal(), ["spec.0"]);
    }
  });

  it("distinguishes a value of a wrong type from a failure of the server", () => {
    for (const [message, isMisread] of [
      [`failed to create typed patch object (/one; v1, Kind=Service): .spec.l: expected list, got &{${MARKER}}`, true],
      ["failed to convert new object (/d; /v1, Kind=ResourceQuota) to proper version: unable to", true],
      ["etcdserver: leader changed", false],
    ] as const) {
      assert.equal(answered(500, { message }).isMisread, isMisread, message);
      assert.equal(answered(503, { message }).isMisread, false);
    }
  });

  it("distinguishes a missing permission from a refusal by admission", () => {
    for (const [message, isDenied] of [
      [
        'secrets "a" is forbidden: User "x" cannot patch resource "secrets" in API group "" in the namespace "a"',
        false,
      ],
      ['admission webhook "x.example.com" denied the request: no', true],
      [`a "b" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: ${MARKER}`, true],
      ['pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1', true],
      [undefined, false],
    ] as const) {
      assert.equal(answered(403, { reason: "Forbidden", message }).isDenied, isDenied, message);
    }
    assert.equal(
      answered(422, { message: 'admission webhook "x.example.com" denied the request: no' }).isDenied,
      false,
    );
  });

  it("names the managers and paths of a conflict", () => {
    const { conflicts } = answered(409, {
      reason: "Conflict",
      details: {
        causes: [
          { reason: "FieldManagerConflict", message: 'conflict with "argocd" using apps/v1', field: ".spec.replicas" },
          {
            reason: "FieldManagerConflict",
            message: 'conflict with "kubectl" with subresource "scale"',
            field: ".spec.a",
          },
          { reason: "FieldManagerConflict", message: "in words of a later version" },
          { reason: "FieldValueInvalid", message: "x", field: "spec.b" },
        ],
      },
    });
    assert.deepEqual(conflicts, [
      { manager: "argocd", path: ".spec.replicas" },
      { manager: "kubectl", path: ".spec.a" },
      { manager: "another manager", path: "" },
    ]);
  });

  it("has no conflicts and no subject if the answer names none", () => {
    for (const body of ["", "404 page not found", "null", "7", '"text"', "[]", {}, { details: {} }]) {
      const { conflicts, subject } = answered(404, body);
      assert.deepEqual([conflicts, subject], [[], { resource: "", name: "" }], JSON.stringify(body));
    }
  });

  it("names the subject of the refusal, such as the account that may not be impersonated", () => {
    const { subject } = answered(403, { reason: "Forbidden", details: { name: "inlay", kind: "serviceaccounts" } });
    assert.deepEqual(subject, { resource: "serviceaccounts", name: "inlay" });
  });

  it("has the seconds to wait if the server sends them", () => {
    assert.equal(answered(429, {}, "7").retryAfterSeconds, 7);
    for (const header of [undefined, "", "Wed, 21 Oct 2026 07:28:00 GMT"]) {
      assert.equal(answered(429, {}, header).retryAfterSeconds, undefined);
    }
  });

  it("has the client's code if there is no answer", () => {
    assert.equal(new ApiError("GET /x", 0, "ECONNREFUSED").message, "GET /x: no answer ECONNREFUSED");
  });

  it("differs from other errors and other statuses", () => {
    assert.ok(isStatus(answered(409, {}), 409));
    assert.ok(!isStatus(answered(404, {}), 409));
    assert.ok(!isStatus(Object.assign(new Error("x"), { status: 409 }), 409));
    assert.ok(!isStatus(undefined, 409));
  });
});
