/** Notifications and their text come in; the JSON that a receiver takes goes out. Pure. */
import type { ReceiverType } from "../api/notification-rules.ts";
import type { Notification } from "./notification.ts";

export function bodyOf(type: ReceiverType, notifications: readonly Notification[], text: string): string {
  if (type === "Slack") return JSON.stringify({ text });
  return JSON.stringify(type === "Teams" ? cardOf(text) : plain(notifications, text));
}

/** What the workflow "Post to a channel when a webhook request is received" takes. */
function cardOf(text: string): object {
  const content = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.2",
    // A line break in a block is a space to Teams.
    body: text.split("\n").map((line) => ({ type: "TextBlock", text: line, wrap: true })),
  };
  const attachment = { contentType: "application/vnd.microsoft.card.adaptive", contentUrl: null, content };
  return { type: "message", attachments: [attachment] };
}

function plain(notifications: readonly Notification[], text: string): object {
  const all = notifications.map(({ id: _, ...fields }) => fields);
  const [only, ...others] = all;
  if (others.length === 0) return { ...only, text };
  const count = (event: string) => all.filter((each) => each.event === event).length;
  const counts = { Restarted: count("Restarted"), RestartFailed: count("RestartFailed") };
  return { event: "Gathered", counts, notifications: all, text };
}
