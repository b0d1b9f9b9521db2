/** Rows of brokers and of who scales by them. */
import { secretText } from "../../controller/hunted.ts";
import type { Row } from "../row.ts";

const sinkRow: Row = {
  number: 12,
  title: "a KafkaSink is made with a list of servers out of one text",
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

export const messaging: Row[] = [sinkRow, rabbitRow];
