/** Rows of buckets and databases. */
import { secretText } from "../../controller/hunted.ts";
import type { Row } from "../row.ts";

const cloneRow: Row = {
  number: 10,
  title: "a postgresql of Zalando is cloned with a key pair and a composed path, written once",
  values: () => ({
    backup: {
      AWS_ACCESS_KEY_ID: secretText("key"),
      AWS_SECRET_ACCESS_KEY: `${secretText("pair")}/+=`,
      bucket: secretText("bucket"),
      endpoint: `https://${secretText("s3")}.example.com`,
    },
  }),
  targets: [
    {
      apiVersion: "acid.zalan.do/v1",
      kind: "postgresql",
      plural: "postgresqls",
      name: "shop-copy",
      object: {
        spec: {
          teamId: "shop",
          numberOfInstances: 1,
          postgresql: { version: "16" },
          volume: { size: "1Gi" },
          clone: { cluster: "shop", timestamp: "2025-06-01T12:00:00+00:00", s3_force_path_style: true },
        },
      },
      entry: {
        mode: "Once",
        fields: [
          { path: "spec.clone.s3_access_key_id", from: { source: "backup", key: "AWS_ACCESS_KEY_ID" } },
          { path: "spec.clone.s3_secret_access_key", from: { source: "backup", key: "AWS_SECRET_ACCESS_KEY" } },
          { path: "spec.clone.s3_endpoint", from: { source: "backup", key: "endpoint" } },
          { path: "spec.clone.s3_wal_path", template: "s3://{{backup.bucket}}/spilo/shop/wal/16" },
        ],
      },
      arrives: ({ backup }) => [
        [["spec", "clone", "s3_access_key_id"], backup.AWS_ACCESS_KEY_ID],
        [["spec", "clone", "s3_secret_access_key"], backup.AWS_SECRET_ACCESS_KEY],
        [["spec", "clone", "s3_endpoint"], backup.endpoint],
        [["spec", "clone", "s3_wal_path"], `s3://${backup.bucket}/spilo/shop/wal/16`],
      ],
      operation: "Apply",
    },
  ],
};

export const storage: Row[] = [cloneRow];
