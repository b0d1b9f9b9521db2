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
      '17:05:01Z WARN  reconcile failed binding=registry/harbor-s3 attempts=2 error={"name":"Problem"}',
    );
  });

  it("colors only the level", () => {
    const colored = (color: string, text: string) => `<${color}>${text}</>`;
    assert.equal(textOf(line({ n: 1 }), colored), "17:05:01Z <yellow>WARN </> reconcile failed n=1");
    assert.equal(textOf(line({ level: "info" }), colored), "17:05:01Z INFO  reconcile failed");
  });

  it("has no control character of a terminal", () => {
    assert.equal(textOf(line({ manager: "a\u001b[2J" })), "17:05:01Z WARN  reconcile failed manager=a [2J");
    assert.doesNotMatch(textOf(line({ note: "a \u009b\u202e b" })), /[\p{Cc}\p{Cf}]/u);
  });

  it("is one line, whatever a field contains", () => {
    assert.equal(textOf(line({ note: "a b\nc" })), String.raw`17:05:01Z WARN  reconcile failed note="a b\nc"`);
  });
});
