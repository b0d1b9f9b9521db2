/** Log lines for people have the time, the level, the text, and the fields. */
import assert from "node:assert/strict";
import { textOf } from "../../../src/observability/log.ts";

describe("a log line as text", () => {
  const line = (more: object) =>
    JSON.stringify({ level: "warn", time: "2026-11-24T17:05:01.123Z", ...more, msg: "reconcile failed" });

  it("begins with the time and the level, and ends with the fields", () => {
    const fields = { binding: "registry/harbor-s3", attempts: 2, error: { name: "Problem" } };
    assert.equal(
      textOf(line(fields)),
      '17:05:01 WARN  reconcile failed binding=registry/harbor-s3 attempts=2 error={"name":"Problem"}',
    );
  });

  it("is one line, whatever a field contains", () => {
    assert.equal(textOf(line({ note: "a b\nc" })), String.raw`17:05:01 WARN  reconcile failed note="a b\nc"`);
  });
});
