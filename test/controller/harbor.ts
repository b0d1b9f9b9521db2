/** The HarborCluster that most tests bind, and its kind. */
import { join } from "node:path";
import type { AnyObject, Api } from "./api.ts";
import { applyObjects, objectsIn } from "./manifests.ts";

const CRD = join(import.meta.dirname, "..", "..", "samples", "harbor", "crd");

/**
 * The kind with its stored version alone, so that tests take the path of most kinds. The pages of samples and compositions install all
 * versions, between which nothing converts, as Harbor does.
 */
export async function harborKind(): Promise<AnyObject> {
  const [crd] = await objectsIn(CRD);
  const versions = crd.spec.versions.filter(({ storage }: AnyObject) => storage);
  return { ...crd, spec: { ...crd.spec, versions } };
}

export const installHarbors = async (api: Api): Promise<void> => applyObjects(api, [await harborKind()]);

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
