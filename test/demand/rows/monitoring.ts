/** The rows of tools that measure and alert. */
import { randomInt } from "node:crypto";
import { registerSecret, secretText } from "../../controller/leak-detector.ts";
import { base64, type Row } from "../row.ts";

const prometheus = { apiVersion: "monitoring.coreos.com/v1", kind: "Prometheus", plural: "prometheuses" };
const alertmanager = {
  apiVersion: "monitoring.coreos.com/v1alpha1",
  kind: "AlertmanagerConfig",
  plural: "alertmanagerconfigs",
};

const withKey = {
  path: "spec.remoteWrite[name=central].url",
  onMissingElement: "Append",
  template: "https://metrics.example.com/write?API_KEY={{urlencode central.key}}",
};
const remoteWriteRow: Row = {
  number: 14,
  title: "a Prometheus writes to a URL with the key in it, encoded, in an element that is added and removed with it",
  values: () => ({ central: { key: `${secretText("key")}/+ &` } }),
  targets: [
    {
      ...prometheus,
      name: "with-others",
      object: {
        spec: { replicas: 2, remoteWrite: [{ name: "archive", url: "https://archive.example.com/write" }] },
      },
      entry: { fields: [withKey] },
      arrives: ({ central }) => [[["spec", "remoteWrite", 1], { name: "central", url: urlWith(central.key) }]],
      operation: "Update",
    },
    {
      ...prometheus,
      name: "alone",
      object: { spec: { replicas: 1 } },
      entry: { fields: [withKey] },
      arrives: ({ central }) => [[["spec", "remoteWrite"], [{ name: "central", url: urlWith(central.key) }]]],
      operation: "Update",
    },
  ],
};

function urlWith(key: string): string {
  return `https://metrics.example.com/write?API_KEY=${encodeURIComponent(key)}`;
}

const botToken = { name: "telegram", key: "token" };
const alertRow: Row = {
  number: 15,
  title: "an AlertmanagerConfig gets a chat's id as a negative integer of 64 bits, and a mail server's host and port",
  values: () => ({
    telegram: { chat: registerSecret(`-1${randomInt(1e11, 1e12)}`) },
    mail: { host: secretText("smtp"), port: "587" },
  }),
  targets: [
    {
      ...alertmanager,
      name: "made",
      entry: {
        fields: [
          { path: "spec.receivers[name=team].telegramConfigs[0].chatID", from: { source: "telegram", key: "chat" } },
        ],
        create: {
          manifest: {
            spec: {
              route: { receiver: "team" },
              receivers: [{ name: "blackhole" }, { name: "team", telegramConfigs: [{ botToken, sendResolved: true }] }],
            },
          },
        },
      },
      arrives: ({ telegram }) => [[["spec", "receivers", 1, "telegramConfigs", 0, "chatID"], Number(telegram.chat)]],
    },
    {
      ...alertmanager,
      name: "kept",
      object: {
        spec: {
          route: { receiver: "team" },
          receivers: [
            { name: "blackhole" },
            { name: "team", emailConfigs: [{ to: "team@example.com", from: "alerts@example.com" }] },
          ],
        },
      },
      entry: {
        fields: [
          { path: "spec.receivers[name=team].emailConfigs[0].smarthost", template: "{{mail.host}}:{{mail.port}}" },
        ],
      },
      arrives: ({ mail }) => [[["spec", "receivers", 1, "emailConfigs", 0, "smarthost"], `${mail.host}:${mail.port}`]],
      operation: "Update",
    },
  ],
};

const collectorRow: Row = {
  number: 19,
  title: "an OpenTelemetryCollector's exporter logs in with user and password in one header",
  values: () => ({ otlp: { user: secretText("user"), password: `${secretText("password")}:é` } }),
  targets: [
    {
      apiVersion: "opentelemetry.io/v1beta1",
      kind: "OpenTelemetryCollector",
      plural: "opentelemetrycollectors",
      name: "gateway",
      object: {
        spec: {
          mode: "deployment",
          config: {
            receivers: { otlp: { protocols: { grpc: {} } } },
            exporters: { debug: {}, "otlphttp/x": { endpoint: "https://otlp.example.com" } },
            service: { pipelines: { traces: { receivers: ["otlp"], exporters: ["debug", "otlphttp/x"] } } },
          },
        },
      },
      entry: {
        fields: [
          {
            path: 'spec.config.exporters["otlphttp/x"].headers.Authorization',
            template: 'Basic {{base64 (concat otlp.user ":" otlp.password)}}',
          },
        ],
      },
      arrives: ({ otlp }) => [
        [
          ["spec", "config", "exporters", "otlphttp/x", "headers", "Authorization"],
          `Basic ${base64(`${otlp.user}:${otlp.password}`)}`,
        ],
      ],
      operation: "Apply",
    },
  ],
};

export const monitoring: Row[] = [remoteWriteRow, alertRow, collectorRow];
