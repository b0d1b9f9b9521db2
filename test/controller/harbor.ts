/** The HarborCluster that most tests bind. */

/** A HarborCluster without access key and endpoint. */
export function harborCluster(name: string, s3: object = {}): object {
  return {
    apiVersion: "goharbor.io/v1beta1",
    kind: "HarborCluster",
    metadata: { name },
    spec: {
      externalURL: "https://harbor.example.com",
      version: "2.5.0",
      storage: { kind: "S3", spec: { s3: { region: "eu-central-1", bucket: "harbor", ...s3 } } },
      database: { kind: "PostgreSQL", spec: { postgresql: { hosts: [{ host: "db.example.com", port: 5432 }] } } },
    },
  };
}
