/** Writes the JSON body of a message in the format of the receiver. Pure. */
import type { ReceiverType } from "../api/notification-rules.ts";
import type { Notification } from "./notification.ts";

export function bodyOf(type: ReceiverType, notifications: readonly Notification[], text: string): string {
  if (type === "Slack") return JSON.stringify({ text });
  return JSON.stringify(type === "Teams" ? cardOf(text) : plain(notifications, text));
}

/** The format of the Teams workflow "Post to a channel when a webhook request is received". */
function cardOf(text: string): object {
  const content = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.2",
    // Teams renders a line break within a block as a space.
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
