/** Only reveal() returns a secret value. */
import assert from "node:assert/strict";
import { Console } from "node:console";
import { Writable } from "node:stream";
import { format, inspect } from "node:util";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";

const SECRET = "hunter2-s3cr3t";
const value = new SecretValue({ password: SECRET, bytes: [SECRET] });

/** The output of console, on both streams. */
function printed(print: (console: Console) => void): string {
  let text = "";
  const sink = new Writable({
    write(chunk, _, done) {
      text += chunk;
      done();
    },
  });
  print(new Console({ stdout: sink, stderr: sink }));
  return text;
}

const ways: Record<string, () => string> = {
  "String()": () => String(value),
  "a template literal": () => `${value}`,
  concat: () => "".concat(value as unknown as string),
  "adding with +": () => [value as unknown as string, ""].reduce((text, more) => text + more),
  "JSON.stringify": () => JSON.stringify(value),
  "JSON.stringify, nested": () => JSON.stringify({ a: [value], b: { value } }, null, 2),
  inspect: () => inspect(value),
  "inspect, nested, with hidden": () =>
    inspect({ a: [value], m: new Map([[value, value]]) }, { showHidden: true, depth: null }),
  "inspect without custom printing": () =>
    inspect({ value }, { customInspect: false, showHidden: true, depth: null, getters: true }),
  "format %s %o %O %j": () => format("%s %o %O %j", value, value, value, value),
  "console.log, .dir, .table and .error": () =>
    printed((console) => {
      console.log(value, { value });
      console.dir({ value }, { showHidden: true });
      console.table([{ value }]);
      console.error(new Error("failed", { cause: value }));
    }),
  "an error's cause and properties": () => inspect(Object.assign(new Error("failed", { cause: { value } }), { value })),
  "an error's message": () => String(new Error(value as unknown as string)),
  "its own and inherited keys": () =>
    JSON.stringify([Object.entries(value), Object.getOwnPropertyNames(value), { ...value }]),
  "a structured clone": () => inspect(structuredClone(value)),
  "many errors, and the cause of each": () =>
    inspect(new AggregateError([new Error(`${value}`, { cause: value }), value], `${[value]}`), { depth: null }),
  "an uncaught error's stack": () => new Error(`${value} ${JSON.stringify({ value })}`, { cause: value }).stack ?? "",
  "format %s and %d and %i of a list": () => format("%s %d %i %o", [value], value, value, new Set([value])),
  "a list joined": () => [value, [value]].join(","),
  "entries, values and a spread of what holds it": () =>
    inspect([Object.entries({ value }), Object.values({ value }), { ...{ value } }, [...[value]]], { depth: null }),
  "a key of an object": () => JSON.stringify({ [value as unknown as string]: 1 }),
  "an assertion that fails": () => {
    try {
      assert.deepEqual({ value }, { value: 1 });
      return "";
    } catch (error) {
      return `${inspect(error)}${(error as Error).message}`;
    }
  },
  "a proxy of it": () => inspect(new Proxy(value, {}), { showProxy: true, depth: null }),
  "a class that extends what holds it": () =>
    inspect(
      new (class Holder {
        held = value;
      })(),
      { depth: null },
    ),
  "a mapped value": () => inspect(value.map(({ password }) => password)),
};

describe("a secret value", () => {
  for (const [way, print] of Object.entries(ways)) {
    it(`is not shown by ${way}`, () => assert.ok(!print().includes(SECRET)));
  }

  it("is returned by reveal()", () => {
    assert.equal(value.reveal().password, SECRET);
    assert.equal(value.map(({ password }) => password.length).reveal(), SECRET.length);
  });
});
