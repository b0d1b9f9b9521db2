/** The rows of buckets and databases. */
import { randomInt } from "node:crypto";
import { secretText } from "../../controller/leak-detector.ts";
import { base64, bucketInfo, pem, type Row } from "../row.ts";

const inS3 = ["spec", "storage", "spec", "s3"];
const inPostgresql = ["spec", "database", "spec", "postgresql"];
const harbor = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", plural: "harborclusters" };
const objectStore = { apiVersion: "barmancloud.cnpg.io/v1", kind: "ObjectStore", plural: "objectstores" };
const location = { apiVersion: "velero.io/v1", kind: "BackupStorageLocation", plural: "backupstoragelocations" };

/** The spec of a HarborCluster, with or without a bucket. Of its database it contains only the host. */
function harborSpec(s3: object = {}): object {
  return {
    externalURL: "https://harbor.example.com",
    storage: { kind: "S3", spec: { s3: { region: "eu-central-1", ...s3 } } },
    database: { kind: "PostgreSQL", spec: { postgresql: { hosts: [{ host: "unknown" }] } } },
  };
}

const harborRow: Row = {
  number: 1,
  title: "a HarborCluster gets key and address of its bucket and its database, the port as an integer",
  values: () => ({
    bucket: { key: secretText("key"), name: secretText("bucket"), host: secretText("host"), port: "9000" },
    db: { username: secretText("user"), host: secretText("db"), port: `${randomInt(5000, 6000)}` },
  }),
  targets: [
    {
      ...harbor,
      name: "harbor",
      object: { spec: harborSpec({ bucket: "harbor" }) },
      entry: {
        fields: [
          { path: "spec.storage.spec.s3.accesskey", from: { source: "bucket", key: "key" } },
          { path: "spec.storage.spec.s3.regionendpoint", template: "https://{{bucket.host}}:{{bucket.port}}" },
          { path: "spec.database.spec.postgresql.username", from: { source: "db", key: "username" } },
          { path: "spec.database.spec.postgresql.hosts[0].host", from: { source: "db", key: "host" } },
          { path: "spec.database.spec.postgresql.hosts[0].port", from: { source: "db", key: "port" } },
        ],
      },
      arrives: ({ bucket, db }) => [
        [[...inS3, "accesskey"], bucket.key],
        [[...inS3, "regionendpoint"], `https://${bucket.host}:9000`],
        [[...inPostgresql, "username"], db.username],
        [[...inPostgresql, "hosts", 0, "host"], db.host],
        [[...inPostgresql, "hosts", 0, "port"], Number(db.port)],
      ],
      operation: "Update",
      required: [[...inPostgresql, "hosts", 0, "host"]],
    },
    {
      ...harbor,
      name: "made",
      entry: {
        fields: [
          { path: "spec.storage.spec.s3.bucket", from: { source: "bucket", key: "name" } },
          { path: "spec.storage.spec.s3.accesskey", from: { source: "bucket", key: "key" } },
        ],
        create: { manifest: { spec: harborSpec() } },
      },
      arrives: ({ bucket }) => [
        [[...inS3, "bucket"], bucket.name],
        [[...inS3, "accesskey"], bucket.key],
      ],
    },
  ],
};

const objectStoreRow: Row = {
  number: 2,
  title: "an ObjectStore of CloudNativePG is created from COSI's JSON, and from a bucket claim",
  configMaps: ["claim"],
  values: () => ({
    cosi: { BucketInfo: bucketInfo(secretText("bucket"), `https://${secretText("s3")}.example.com`, "made-up") },
    claim: { BUCKET_NAME: secretText("claimed"), BUCKET_HOST: secretText("host"), BUCKET_PORT: "443" },
  }),
  targets: [
    {
      ...objectStore,
      name: "from-cosi",
      entry: {
        fields: [
          {
            path: "spec.configuration.destinationPath",
            template: 's3://{{pointer cosi.BucketInfo "/spec/bucketName"}}/shop',
          },
          {
            path: "spec.configuration.endpointURL",
            from: { source: "cosi", key: "BucketInfo", pointer: "/spec/secretS3/endpoint" },
          },
        ],
        create: {
          manifest: { spec: { configuration: { wal: { compression: "gzip" } }, retentionPolicy: "30d" } },
        },
      },
      arrives: ({ cosi }) => {
        const { spec } = JSON.parse(cosi.BucketInfo);
        return [
          [["spec", "configuration", "destinationPath"], `s3://${spec.bucketName}/shop`],
          [["spec", "configuration", "endpointURL"], spec.secretS3.endpoint],
        ];
      },
    },
    {
      ...objectStore,
      name: "from-claim",
      entry: {
        fields: [
          { path: "spec.configuration.destinationPath", template: "s3://{{claim.BUCKET_NAME}}/shop" },
          {
            path: "spec.configuration.endpointURL",
            template: "https://{{claim.BUCKET_HOST}}:{{claim.BUCKET_PORT}}",
          },
        ],
        create: { manifest: { spec: { configuration: { s3Credentials: { inheritFromIAMRole: true } } } } },
      },
      arrives: ({ claim }) => [
        [["spec", "configuration", "destinationPath"], `s3://${claim.BUCKET_NAME}/shop`],
        [["spec", "configuration", "endpointURL"], `https://${claim.BUCKET_HOST}:443`],
      ],
    },
  ],
};

const veleroRow: Row = {
  number: 3,
  title: "backup locations of OADP and Velero join a bucket claim's ConfigMap and Secret",
  configMaps: ["claim"],
  values: () => ({
    claim: { BUCKET_NAME: secretText("claimed"), BUCKET_HOST: secretText("host") },
    tls: { "ca.crt": pem() },
  }),
  targets: [
    {
      apiVersion: "oadp.openshift.io/v1alpha1",
      kind: "DataProtectionApplication",
      plural: "dataprotectionapplications",
      name: "made",
      entry: {
        fields: [
          {
            path: "spec.backupLocations[0].velero.objectStorage.bucket",
            from: { source: "claim", key: "BUCKET_NAME" },
          },
          { path: "spec.backupLocations[0].velero.config.s3Url", template: "https://{{claim.BUCKET_HOST}}" },
          { path: "spec.backupLocations[0].velero.objectStorage.caCert", from: { source: "tls", key: "ca.crt" } },
        ],
        create: {
          manifest: {
            spec: {
              configuration: { velero: { defaultPlugins: ["openshift", "aws"] } },
              backupLocations: [
                {
                  velero: {
                    provider: "aws",
                    default: true,
                    config: { region: "eu-central-1" },
                    credential: { name: "cloud-credentials", key: "cloud" },
                    objectStorage: { prefix: "velero" },
                  },
                },
              ],
            },
          },
        },
      },
      arrives: ({ claim, tls }) => {
        const velero = ["spec", "backupLocations", 0, "velero"];
        return [
          [[...velero, "objectStorage", "bucket"], claim.BUCKET_NAME],
          [[...velero, "objectStorage", "caCert"], base64(tls["ca.crt"])],
          [[...velero, "config", "s3Url"], `https://${claim.BUCKET_HOST}`],
        ];
      },
    },
    {
      ...location,
      name: "made",
      entry: {
        fields: [
          { path: "spec.objectStorage.bucket", from: { source: "claim", key: "BUCKET_NAME" } },
          { path: "spec.config.s3Url", template: "https://{{claim.BUCKET_HOST}}" },
          { path: "spec.objectStorage.caCert", from: { source: "tls", key: "ca.crt" } },
        ],
        create: { manifest: { spec: { provider: "aws", objectStorage: { prefix: "velero" } } } },
      },
      arrives: ({ claim, tls }) => [
        [["spec", "objectStorage", "bucket"], claim.BUCKET_NAME],
        [["spec", "objectStorage", "caCert"], base64(tls["ca.crt"])],
        [["spec", "config", "s3Url"], `https://${claim.BUCKET_HOST}`],
      ],
    },
    {
      ...location,
      name: "kept",
      object: { spec: { provider: "aws", objectStorage: { bucket: "kept" } } },
      entry: {
        fields: [
          { path: "spec.config.s3Url", template: "https://{{claim.BUCKET_HOST}}" },
          { path: "spec.objectStorage.caCert", from: { source: "tls", key: "ca.crt" } },
        ],
      },
      arrives: ({ claim, tls }) => [
        [["spec", "objectStorage", "caCert"], base64(tls["ca.crt"])],
        [["spec", "config", "s3Url"], `https://${claim.BUCKET_HOST}`],
      ],
      operation: "Apply",
    },
  ],
};

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

const FILE = "config.d/s3_disk.xml";
const clickHouseRow: Row = {
  number: 18,
  title: "a file of a ClickHouseInstallation is XML with escaped values",
  values: () => ({ bucket: { key: `${secretText("key")}<&>`, secret: `"${secretText("pair")}'` } }),
  targets: [
    {
      apiVersion: "clickhouse.altinity.com/v1",
      kind: "ClickHouseInstallation",
      plural: "clickhouseinstallations",
      name: "events",
      object: {
        spec: {
          configuration: {
            clusters: [{ name: "main", layout: { shardsCount: 1, replicasCount: 2 } }],
            files: { "config.d/log.xml": "<clickhouse><logger><level>information</level></logger></clickhouse>" },
          },
        },
      },
      entry: {
        fields: [
          {
            path: `spec.configuration.files["${FILE}"]`,
            template: [
              "<clickhouse><storage_configuration><disks><s3>",
              "  <access_key_id>{{xml bucket.key}}</access_key_id>",
              "  <secret_access_key>{{xml bucket.secret}}</secret_access_key>",
              "</s3></disks></storage_configuration></clickhouse>\n",
            ].join("\n"),
          },
        ],
      },
      arrives: ({ bucket }) => {
        const [key, secret] = [bucket.key.replace("<&>", "&lt;&amp;&gt;"), bucket.secret];
        const text = [
          "<clickhouse><storage_configuration><disks><s3>",
          `  <access_key_id>${key}</access_key_id>`,
          `  <secret_access_key>&quot;${secret.slice(1, -1)}&apos;</secret_access_key>`,
          "</s3></disks></storage_configuration></clickhouse>\n",
        ].join("\n");
        return [[["spec", "configuration", "files", FILE], text]];
      },
      operation: "Apply",
    },
  ],
};

export const storage: Row[] = [harborRow, objectStoreRow, veleroRow, cloneRow, clickHouseRow];
