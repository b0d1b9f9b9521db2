/** The section `notifications` of the configuration: what it may say, and what is said of a mistake in it. */
import assert from "node:assert/strict";
import { notificationsOf } from "../../../src/cli/notifications-config.ts";

const url = { secret: { name: "inlay-notifications", key: "ops" } };
const ops = { name: "ops", type: "Webhook", url };

describe("the notifications of a configuration", () => {
  it("are of all restarts and failures, in all namespaces, by https", () => {
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

  it("are of some where it says so", () => {
    const more = { insecure: true, events: ["RestartFailed"], namespaces: ["prod-*"], template: "{{message}}" };
    const [first] = notificationsOf([
      { ...ops, ...more },
      { ...ops, name: "beside", type: "Teams" },
    ]);
    assert.deepEqual({ ...first, ...more }, first);
  });

  const mistakes: [what: string, value: unknown, says: RegExp][] = [
    ["no list", {}, /^notifications: must be a list$/],
    [
      "of an unknown field",
      [{ ...ops, event: [] }],
      /^notifications\[0\]\.event: there is no such field; did you mean events\?/,
    ],
    ["without a name", [{ type: "Slack", url }], /^notifications\[0\]\.name: must be a name of small letters/],
    [
      "called with a blank",
      [{ ...ops, name: "the ops" }],
      /^notifications\[0\]\.name: must be a name of small letters/,
    ],
    ["two of a name", [ops, ops], /^notifications\[1\]\.name: another receiver is called ops too/],
    ["of an unknown type", [{ ...ops, type: "Mail" }], /^notifications\[0\]\.type: must be Slack, Teams, Webhook$/],
    ["without a URL", [{ name: "ops", type: "Slack" }], /^notifications\[0\]\.url: must be an object$/],
    [
      "with a URL in it",
      [{ ...ops, url: "https://example.com/hook" }],
      /^notifications\[0\]\.url: keep the URL in a Secret, and write \{ secret: \{ name, key \} \} here$/,
    ],
    [
      "without a key",
      [{ ...ops, url: { secret: { name: "x" } } }],
      /^notifications\[0\]\.url\.secret\.key: must be a text$/,
    ],
    ["of no flag", [{ ...ops, insecure: "yes" }], /^notifications\[0\]\.insecure: must be true or false$/],
    [
      "of no events",
      [{ ...ops, events: [] }],
      /^notifications\[0\]\.events: is empty, so nothing is sent; leave it out for all$/,
    ],
    [
      "of an unknown event",
      [{ ...ops, events: ["Failed"] }],
      /^notifications\[0\]\.events\[0\]: must be Restarted or RestartFailed$/,
    ],
    ["of no namespaces", [{ ...ops, namespaces: [] }], /^notifications\[0\]\.namespaces: is empty/],
    ["of no template", [{ ...ops, template: 7 }], /^notifications\[0\]\.template: must be a text$/],
    [
      "of an unknown field in a template",
      [{ ...ops, template: "a\n{{mesage}}" }],
      /^notifications\[0\]\.template: template 2:3: there is no mesage; did you mean message\?/,
    ],
    [
      "of a broken template",
      [{ ...ops, template: "{{#if event}}" }],
      /^notifications\[0\]\.template: template 1, near /,
    ],
  ];
  for (const [what, value, says] of mistakes) {
    it(`may not be ${what}`, () => assert.throws(() => notificationsOf(value), { message: says }));
  }

  it("never quote a URL that is in the wrong place", () => {
    assert.throws(
      () => notificationsOf([{ ...ops, url: "https://example.com/path-of-it" }]),
      ({ message }: Error) => !message.includes("path-of-it"),
    );
  });
});
