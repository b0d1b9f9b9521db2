/** The rows of tools that build and deliver software. */
import { secretText } from "../../controller/leak-detector.ts";
import type { Row } from "../row.ts";

const applicationRow: Row = {
  number: 22,
  title: "an Application of Argo CD gets a tree of Helm values from YAML, and one parameter by its name",
  configMaps: ["release"],
  values: () => ({
    release: {
      "values.yaml": `replicas: 3\ningress:\n  host: ${secretText("host")}\n  tls: true\n`,
      tag: secretText("tag"),
    },
  }),
  targets: [
    {
      apiVersion: "argoproj.io/v1alpha1",
      kind: "Application",
      plural: "applications",
      name: "shop",
      object: {
        spec: {
          project: "default",
          destination: { server: "https://kubernetes.default.svc", namespace: "shop" },
          source: {
            repoURL: "https://charts.example.com",
            chart: "shop",
            targetRevision: "1.2.3",
            helm: {
              parameters: [
                { name: "debug", value: "false" },
                { name: "image.tag", forceString: true },
              ],
            },
          },
        },
      },
      entry: {
        fields: [
          { path: "spec.source.helm.valuesObject", from: { source: "release", key: "values.yaml" }, as: "yaml" },
          { path: "spec.source.helm.parameters[name=image.tag].value", from: { source: "release", key: "tag" } },
        ],
      },
      arrives: ({ release }) => {
        const host = /host: (\S+)/.exec(release["values.yaml"])?.[1];
        return [
          [["spec", "source", "helm", "valuesObject"], { replicas: 3, ingress: { host, tls: true } }],
          [["spec", "source", "helm", "parameters", 1, "value"], release.tag],
        ];
      },
      operation: "Update",
    },
  ],
};

const runRow: Row = {
  number: 23,
  title: "a PipelineRun is created with a parameter, and does not change again",
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

export const delivery: Row[] = [applicationRow, runRow];
