/** Which keys of a source pass the regular expressions of a field, and the cost. */
import assert from "node:assert/strict";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { type KeyFilter, keyFilter, newFilterEffort } from "../../../src/transform/key-filter.ts";

const KEYS = ["tls.crt", "tls.key", "ca.crt", "TLS.crt", "config", "config-tls"];
const chosen = (filter: KeyFilter) => KEYS.filter(keyFilter(filter, "from", newFilterEffort()));
const refusal = (act: () => unknown): Problem => {
  try {
    act();
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
  return assert.fail("nothing was refused");
};
const mistakeIn = (filter: KeyFilter) =>
  refusal(() => keyFilter(filter, "spec.targets[0].fields[1].from", newFilterEffort()));

describe("a filter of keys", () => {
  it("passes keys that match any of include anywhere, and none of exclude", () => {
    assert.deepEqual(chosen({}), KEYS);
    assert.deepEqual(chosen({ include: ["tls"] }), ["tls.crt", "tls.key", "config-tls"]);
    assert.deepEqual(chosen({ include: ["^tls[.]", "^ca"] }), ["tls.crt", "tls.key", "ca.crt"]);
    assert.deepEqual(chosen({ exclude: ["[.]key$", "^config$"] }), ["tls.crt", "ca.crt", "TLS.crt", "config-tls"]);
    assert.deepEqual(chosen({ include: ["(?i)^tls"], exclude: ["key"] }), ["tls.crt", "TLS.crt"]);
    assert.deepEqual(chosen({ include: ["^tls"], exclude: [""] }), []);
  });

  it("names the position of an expression that is invalid or too large", () => {
    for (const [filter, said] of [
      [{ include: ["a", "(b"] }, /^spec\.targets\[0\]\.fields\[1\]\.from\.include\[1\]: is not a regular expression/],
      [{ exclude: ["a(?=b)"] }, /^spec\.targets\[0\]\.fields\[1\]\.from\.exclude\[0\]: is not a regular expression/],
      [{ exclude: ["(a{1000}){1000}"] }, /from\.exclude\[0\]: the regular expression is too large; shorten it/],
      [{ include: ["a"], exclude: Array(16).fill("b{1,999}") }, /from\.exclude\[\d+\]: .* too large together/],
    ] satisfies [KeyFilter, RegExp][]) {
      const { reason, message, retryPolicy } = mistakeIn(filter);
      assert.deepEqual([reason, retryPolicy], ["InvalidBinding", "Terminal"]);
      assert.match(message, said);
    }
  });

  it("fails if matching takes too long, until the source changes", () => {
    const passes = keyFilter({ include: ["(a|b|c|d)*x"] }, "from", newFilterEffort());
    const { reason, message, retryPolicy } = refusal(() => {
      for (let each = 0; each < 50_000; each++) passes(`${each}`.padStart(253, "a"));
    });
    assert.deepEqual([reason, retryPolicy], ["InvalidBinding", "OnChange"]);
    assert.match(message, /^from: .* include and exclude .* takes too long/);
  });

  it("of several fields uses one effort", () => {
    const effort = { left: 20_000 };
    keyFilter({ include: ["a"] }, "from", effort)("a");
    assert.ok(effort.left < 20_000);
    effort.left = 0;
    assert.match(
      refusal(() => keyFilter({ include: ["a"] }, "from", effort)).message,
      /^from\.include\[0\]: .* too large together/,
    );
  });
});
