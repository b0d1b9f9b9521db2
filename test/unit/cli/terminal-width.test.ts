/** For how many columns the commands print tables. */
import assert from "node:assert/strict";
import { terminalWidth } from "../../../src/cli/output.ts";

describe("the width of the text", () => {
  const terminal = { isTTY: true, columns: 80 };
  const pipe = { isTTY: false, columns: 0 };

  it("is that of the terminal", () => assert.equal(terminalWidth(terminal, {}), 80));
  it("is not limited in a pipe or file, or in a terminal that does not know it", () => {
    assert.equal(terminalWidth(pipe, {}), Number.POSITIVE_INFINITY);
    assert.equal(terminalWidth({ isTTY: true, columns: 0 }, {}), Number.POSITIVE_INFINITY);
  });
  it("is COLUMNS, if that is a number of columns", () => {
    assert.deepEqual([terminalWidth(terminal, { COLUMNS: "60" }), terminalWidth(pipe, { COLUMNS: "200" })], [60, 200]);
    for (const COLUMNS of ["", "0", "-1", "wide", "1e3"]) assert.equal(terminalWidth(terminal, { COLUMNS }), 80);
  });
});
