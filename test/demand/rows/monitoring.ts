/** Rows of who measures, and who is told. */
import { secretText } from "../../controller/hunted.ts";
import { base64, type Row } from "../row.ts";

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

export const monitoring: Row[] = [collectorRow];
