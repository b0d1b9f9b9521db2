/** The text of a message: the default, from a template, and for many notifications; and the body for each type of receiver. */
import assert from "node:assert/strict";
import { bodyOf } from "../../../src/notifications/notifier.ts";
import { NotificationText, notificationTemplate } from "../../../src/notifications/text.ts";
import { failureOf, notificationOf } from "./notifications.ts";

const web = notificationOf("web");
const textOf = (template?: string, notification = web) => new NotificationText("Slack", template).of([notification]);

describe("the text of a notification", () => {
  it("is a default sentence without a template", () => {
    assert.equal(textOf(), "Deployment shop/web restarted by SecretBinding shop/rolls, as bucket/token changed");
    assert.equal(
      textOf(undefined, failureOf("web")),
      "Deployment shop/web failed to restart: no progress (SecretBinding shop/rolls)",
    );
    const ofCluster = { ...web, workload: { ...web.workload, namespace: "" } };
    assert.match(textOf(undefined, ofCluster), /^Deployment web restarted/);
  });

  it("is the rendered template, which may use every field", () => {
    const all =
      "{{event}} {{reason}} {{time}} {{workload.apiVersion}} {{workload.kind}} {{workload.namespace}}/{{workload.name}} {{binding.namespace}}/{{binding.name}} {{keys}}: {{message}}";
    assert.equal(
      textOf(all),
      "Restarted Restarted 2026-01-01T00:00:00.000Z apps/v1 Deployment shop/web shop/rolls bucket/token, bucket/user: restarted by SecretBinding shop/rolls, as bucket/token changed",
    );
    assert.equal(textOf("{{workload.name}}"), "web");
    assert.equal(
      textOf('{{#if keys}}<https://wiki|{{upper event}}>{{/if}}{{replace message "rolls" "x"}}').slice(0, 27),
      "<https://wiki|RESTARTED>res",
    );
  });

  const mistakes: [template: string, says: RegExp][] = [
    ["{{", /^template 1, near \{\{: not well-formed, /],
    ["a {{workload.nam}}", /^template 1:5: workload\.nam .*workload\.name/],
    ["{{workload}}", /^template 1:3: workload .*workload\.kind, /],
    ["{{evnt}}", /^template 1:3: evnt .*event, /],
    ["{{event.name}}", /^template 1:3: event\.name /],
    ["{{[workload.name]}}", /no field workload\.name/],
    ["{{#if value}}{{/if}}", /^template 1:7: value /],
    ["{{__proto__.name}}", /^template 1:3: __proto__\.name /],
    ["{{workload.constructor}}", /^template 1:3: workload\.constructor /],
    ["{{lookup workload 'name'}}", /^template 1:1: lookup is not a helper; /],
    ["{{#each keys}}{{this}}{{/each}}", /^template 1:1: this block is not allowed, /],
    ["{{base64decode message}}", /^template 1:1: /],
  ];
  for (const [template, says] of mistakes) {
    it(`rejects the template ${template}`, () =>
      assert.throws(() => notificationTemplate(template), {
        reason: /^(InvalidTemplate|InvalidValue|KeyNotFound)$/,
        message: says,
      }));
  }

  it("neither mentions people, nor disguises links, nor adds lines by the message of a workload", () => {
    const message = "<!channel> [click](https://example.com) & *more*\nDeployment shop/other restarted";
    const hostile = failureOf("web", { message });
    for (const template of [undefined, "{{message}}"]) {
      const [slack, teams] = (["Slack", "Teams"] as const).map((type) =>
        new NotificationText(type, template).of([hostile]),
      );
      assert.match(
        slack ?? "",
        /&lt;!channel&gt; \[click\]\(https:\/\/example\.com\) &amp; \*more\* Deployment shop\/other/,
      );
      assert.match(
        teams ?? "",
        /<!channel> \\\[click\\\]\(https:\/\/example\.com\) & \\\*more\\\* Deployment shop\/other/,
      );
    }
  });

  it("counts many notifications, names failures, and is bounded", () => {
    const many = [
      ...Array.from({ length: 30 }, (_, n) => notificationOf(`web-${n}`)),
      ...Array.from({ length: 12 }, (_, n) => failureOf(`core-${n}`)),
    ];
    const [first, ...lines] = new NotificationText("Slack", "{{event}}").of(many).split("\n");
    assert.equal(first, "30 workloads restarted, 12 workloads failed to restart, in shop (42)");
    assert.equal(lines[0], "Deployment shop/core-0 failed to restart: no progress (SecretBinding shop/rolls)");
    assert.deepEqual([lines.length, lines.at(-1)], [11, "and 2 more that failed"]);
    assert.ok(textOf(undefined, failureOf("web", { message: "x".repeat(10_000) })).length < 4_000);
  });
});

describe("the body of a message", () => {
  const parsed = (...args: Parameters<typeof bodyOf>) => JSON.parse(bodyOf(...args));
  const { id: _, ...fields } = web;

  it("is a text for Slack, and an Adaptive Card for Teams", () => {
    assert.deepEqual(parsed("Slack", [web], "one\ntwo"), { text: "one\ntwo" });
    const { type, attachments } = parsed("Teams", [web], "one\ntwo");
    const [{ contentType, content }] = attachments;
    assert.deepEqual([type, contentType], ["message", "application/vnd.microsoft.card.adaptive"]);
    assert.deepEqual(
      [content.type, content.body.map(({ text }: { text: string }) => text)],
      ["AdaptiveCard", ["one", "two"]],
    );
  });

  it("has every field for a webhook, also for many notifications", () => {
    assert.deepEqual(parsed("Webhook", [web], "text"), { ...fields, text: "text" });
    const many = parsed("Webhook", [web, failureOf("core")], "text");
    assert.deepEqual(many.counts, { Restarted: 1, RestartFailed: 1 });
    assert.deepEqual([many.event, many.text, many.notifications[0]], ["Gathered", "text", fields]);
  });
});
