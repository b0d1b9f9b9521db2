/** Reads of the section `notifications` of the configuration, and the errors for its mistakes. */
import assert from "node:assert/strict";
import { notificationsOf } from "../../../src/cli/config-file.ts";

const url = { secret: { name: "inlay-notifications", key: "ops" } };
const ops = { name: "ops", type: "Webhook", url };

describe("the section notifications", () => {
  it("covers all restarts and failures in all namespaces, over https, by default", () => {
    assert.deepEqual(notificationsOf([ops]), [
      {
        name: "ops",
        type: "Webhook",
        url: { secret: "inlay-notifications", key: "ops" },
        insecure: false,
        events: ["Restarted", "RestartFailed"],
        namespaces: ["*"],
      },
    ]);
  });

  it("selects events and namespaces", () => {
    const more = { insecure: true, events: ["RestartFailed"], namespaces: ["prod-*"], template: "{{message}}" };
    const [first] = notificationsOf([
      { ...ops, ...more },
      { ...ops, name: "beside", type: "Teams" },
    ]);
    assert.deepEqual({ ...first, ...more }, first);
  });

  const mistakes: [what: string, value: unknown, says: RegExp][] = [
    ["not a list", {}, /^notifications: must be a list$/],
    ["of an unknown field", [{ ...ops, event: [] }], /^notifications\[0\]\.event: .*events/],
    ["without a name", [{ type: "Slack", url }], /^notifications\[0\]\.name: must be a name/],
    ["called with a blank", [{ ...ops, name: "the ops" }], /^notifications\[0\]\.name: must be a name/],
    ["two with the same name", [ops, ops], /^notifications\[1\]\.name: .*\bops\b/],
    ["of an unknown type", [{ ...ops, type: "Mail" }], /^notifications\[0\]\.type: must be Slack, Teams, Webhook$/],
    ["without a URL", [{ name: "ops", type: "Slack" }], /^notifications\[0\]\.url: must be an object$/],
    [
      "with a URL in it",
      [{ ...ops, url: "https://example.com/hook" }],
      /^notifications\[0\]\.url: .*\{ secret: \{ name, key \} \}/,
    ],
    ["without a key", [{ ...ops, url: { secret: { name: "x" } } }], /^notifications\[0\]\.url\.secret\.key: .*string/],
    [
      "insecure is not a boolean",
      [{ ...ops, insecure: "yes" }],
      /^notifications\[0\]\.insecure: must be true or false$/,
    ],
    ["of no events", [{ ...ops, events: [] }], /^notifications\[0\]\.events: .*empty/],
    [
      "of an unknown event",
      [{ ...ops, events: ["Failed"] }],
      /^notifications\[0\]\.events\[0\]: must be Restarted or RestartFailed$/,
    ],
    ["an empty list of namespaces", [{ ...ops, namespaces: [] }], /^notifications\[0\]\.namespaces: .*empty/],
    ["template is not a string", [{ ...ops, template: 7 }], /^notifications\[0\]\.template: .*string/],
    [
      "of an unknown field in a template",
      [{ ...ops, template: "a\n{{mesage}}" }],
      /^notifications\[0\]\.template: template 2:3: .*mesage.*message/,
    ],
    [
      "of a broken template",
      [{ ...ops, template: "{{#if event}}" }],
      /^notifications\[0\]\.template: template 1, near /,
    ],
  ];
  for (const [what, value, says] of mistakes) {
    it(`rejects receivers: ${what}`, () => assert.throws(() => notificationsOf(value), { message: says }));
  }

  it("never quotes a URL that is in the wrong place", () => {
    assert.throws(
      () => notificationsOf([{ ...ops, url: "https://example.com/path-of-it" }]),
      ({ message }: Error) => !message.includes("path-of-it"),
    );
  });
});
