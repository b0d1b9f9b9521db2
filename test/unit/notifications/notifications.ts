/** Notifications for tests, with the given fields. */
import type { ReceiverRules } from "../../../src/api/notification-rules.ts";
import type { Notification } from "../../../src/notifications/text.ts";

export const notificationOf = (name: string, more: Partial<Notification> = {}): Notification => ({
  id: `restarted/${name}`,
  event: "Restarted",
  reason: "Restarted",
  message: "restarted by SecretBinding shop/rolls, as bucket/token changed",
  time: "2026-01-01T00:00:00.000Z",
  workload: { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name },
  binding: { namespace: "shop", name: "rolls" },
  keys: ["bucket/token", "bucket/user"],
  ...more,
});

export const failureOf = (name: string, more: Partial<Notification> = {}): Notification =>
  notificationOf(name, {
    id: `failed/${name}`,
    event: "RestartFailed",
    reason: "RolloutFailed",
    message: "no progress",
    ...more,
  });

export const rulesOf = (more: Partial<ReceiverRules> = {}): ReceiverRules => ({
  name: "ops",
  type: "Webhook",
  url: { secret: "inlay-notifications", key: "ops" },
  insecure: false,
  events: ["Restarted", "RestartFailed"],
  namespaces: ["*"],
  ...more,
});
