/** The lint rule against code that reads a sentence to learn a fact. */
import assert from "node:assert/strict";
import { readsIn } from "../../lint/messages.ts";

describe("code that reads a message", () => {
  for (const line of [
    'problem.message.startsWith("x")',
    "if (/^you may/.test(message)) return;",
    "const [, place] = PLACE.exec(problem.message) ?? [];",
    'mistake?.message.includes("no key")',
    "message.replace(/; set as.*/, '')",
  ])
    it(`is found: ${line}`, () => assert.deepEqual(readsIn(`\n${line}`), [2]));

  for (const line of [
    "message: message.slice(0, MAX_MESSAGE_LENGTH),",
    "message !== undefined && { message }",
    'text.startsWith("x")',
    "new Problem(reason, { at: [place], what: message })",
  ])
    it(`is not: ${line}`, () => assert.deepEqual(readsIn(line), []));
});
