/** Rows of who builds and delivers. */
import { secretText } from "../../controller/hunted.ts";
import type { Row } from "../row.ts";

const runRow: Row = {
  number: 23,
  title: "a PipelineRun is made with a parameter, and never touched again",
  values: () => ({ deploy: { token: secretText("token") } }),
  targets: [
    {
      apiVersion: "tekton.dev/v1",
      kind: "PipelineRun",
      plural: "pipelineruns",
      name: "release-1",
      entry: {
        mode: "Once",
        fields: [{ path: "spec.params[name=token].value", from: { source: "deploy", key: "token" } }],
        create: {
          manifest: {
            spec: {
              pipelineRef: { name: "release" },
              params: [{ name: "revision", value: "main" }, { name: "token" }],
            },
          },
        },
      },
      arrives: ({ deploy }) => [[["spec", "params", 1, "value"], deploy.token]],
      schemaless: true,
    },
  ],
};

export const delivery: Row[] = [runRow];
