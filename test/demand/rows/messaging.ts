/** The rows of message brokers, and of tools that scale by their queues. */
import { secretText } from "../../controller/leak-detector.ts";
import type { Row } from "../row.ts";

const connectRow: Row = {
  number: 11,
  title: "a KafkaConnect gets its user, and a system property by its name",
  values: () => ({ connect: { username: secretText("user"), license: secretText("license") } }),
  targets: [
    {
      apiVersion: "kafka.strimzi.io/v1",
      kind: "KafkaConnect",
      plural: "kafkaconnects",
      name: "connect",
      object: {
        spec: {
          bootstrapServers: "kafka:9092",
          groupId: "connect",
          authentication: { type: "scram-sha-512", passwordSecret: { secretName: "connect", password: "password" } },
          jvmOptions: {
            javaSystemProperties: [
              { name: "user.timezone", value: "UTC" },
              { name: "connector.license" },
              { name: "connector.mode", value: "strict" },
            ],
          },
        },
      },
      entry: {
        fields: [
          { path: "spec.authentication.username", from: { source: "connect", key: "username" } },
          {
            path: "spec.jvmOptions.javaSystemProperties[name=connector.license].value",
            from: { source: "connect", key: "license" },
          },
        ],
      },
      arrives: ({ connect }) => [
        [["spec", "authentication", "username"], connect.username],
        [["spec", "jvmOptions", "javaSystemProperties", 1, "value"], connect.license],
      ],
      operation: "Update",
    },
  ],
};

const sinkRow: Row = {
  number: 12,
  title: "a KafkaSink is created with a list of servers from one text",
  values: () => {
    const servers = Array.from({ length: 3 }, () => `${secretText("broker")}:9092`);
    return { kafka: { "bootstrap.servers": servers.join(",") } };
  },
  targets: [
    {
      apiVersion: "eventing.knative.dev/v1alpha1",
      kind: "KafkaSink",
      plural: "kafkasinks",
      name: "orders",
      entry: {
        fields: [{ path: "spec.bootstrapServers", template: '{{split kafka.[bootstrap.servers] ","}}' }],
        create: { manifest: { spec: { topic: "orders", numPartitions: 3, replicationFactor: 1 } } },
      },
      arrives: ({ kafka }) => [[["spec", "bootstrapServers"], kafka["bootstrap.servers"].split(",")]],
    },
  ],
};

const scaledRow: Row = {
  number: 13,
  title: "a trigger of a ScaledObject gets an entry of its metadata, and the other triggers don't change",
  values: () => ({ queue: { url: `https://sqs.example.com/${secretText("queue")}` } }),
  targets: [
    {
      apiVersion: "keda.sh/v1alpha1",
      kind: "ScaledObject",
      plural: "scaledobjects",
      name: "worker",
      object: {
        spec: {
          scaleTargetRef: { name: "worker" },
          triggers: [
            {
              type: "cron",
              metadata: { timezone: "UTC", start: "0 8 * * *", end: "0 18 * * *", desiredReplicas: "2" },
            },
            { type: "aws-sqs-queue", name: "orders", metadata: { queueLength: "5", awsRegion: "eu-central-1" } },
          ],
        },
      },
      entry: {
        fields: [{ path: "spec.triggers[name=orders].metadata.queueURL", from: { source: "queue", key: "url" } }],
      },
      arrives: ({ queue }) => [[["spec", "triggers", 1, "metadata", "queueURL"], queue.url]],
      operation: "Update",
    },
  ],
};

const rabbitRow: Row = {
  number: 17,
  title: "a RabbitmqCluster's configuration is a text of many lines with values in it",
  values: () => ({ ldap: { dn: `cn=${secretText("dn")},dc=example,dc=com`, password: secretText("password") } }),
  targets: [
    {
      apiVersion: "rabbitmq.com/v1beta1",
      kind: "RabbitmqCluster",
      plural: "rabbitmqclusters",
      name: "broker",
      object: { spec: { replicas: 3, rabbitmq: { additionalPlugins: ["rabbitmq_auth_backend_ldap"] } } },
      entry: {
        fields: [
          {
            path: "spec.rabbitmq.additionalConfig",
            template: [
              "auth_backends.1 = ldap",
              "auth_ldap.dn_lookup_bind.user_dn = {{ldap.dn}}",
              "auth_ldap.dn_lookup_bind.password = {{ldap.password}}\n",
            ].join("\n"),
          },
        ],
      },
      arrives: ({ ldap }) => [
        [
          ["spec", "rabbitmq", "additionalConfig"],
          [
            "auth_backends.1 = ldap",
            `auth_ldap.dn_lookup_bind.user_dn = ${ldap.dn}`,
            `auth_ldap.dn_lookup_bind.password = ${ldap.password}\n`,
          ].join("\n"),
        ],
      ],
      operation: "Apply",
    },
  ],
};

export const messaging: Row[] = [connectRow, sinkRow, scaledRow, rabbitRow];
