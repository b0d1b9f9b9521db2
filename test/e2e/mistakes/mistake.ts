/** A plausible mistake of a new user, and what has to be said about it. The other files of this folder list them. */

/** A SecretBinding with one mistake. */
export interface Mistake {
  /** The title. */
  mistake: string;
  spec: object;
  /** The reason of the condition. Without it, the API server refuses the binding. */
  reason?: string;
  /** The condition. By default Ready. */
  condition?: string;
  /** What the condition, or kubectl, has to say: what is wrong, where, or what to do. */
  says: RegExp;
  /** The namespace of the binding. By default, one with an account and its permissions. */
  where?: Place;
}

/**
 * `shop` has a Secret, a ConfigMap and an account that may read them, write HarborClusters and restart Deployments. In `bare` there is no account
 * called inlay, and in `poor` it has no permissions.
 */
export type Place = "shop" | "bare" | "poor";

let count = 0;
/** How many HarborClusters the targets name. */
export const targetCount = () => count;
export const harborName = (at: number) => `harbor-${at}`;

/** A target of its own for each binding, so that none waits for another. */
export const harbor = (more: object = {}): object => ({
  apiVersion: "goharbor.io/v1beta1",
  kind: "HarborCluster",
  name: harborName(++count),
  ...more,
});

export const S3 = "spec.storage.spec.s3";
export const bucket = { secret: { name: "bucket" } };
export const key = (name: string, more: object = {}) => ({ source: "bucket", key: name, ...more });
export const accessKey = { path: `${S3}.accesskey`, from: key("accessKeyID") };

/** A binding of one field. */
export const field = (given: object): object => ({ sources: [bucket], targets: [harbor({ fields: [given] })] });
export const at = (path: string) => field({ path, from: key("accessKeyID") });
export const template = (text: string) => field({ path: `${S3}.regionendpoint`, template: text });
export const target = (more: object) => ({ sources: [bucket], targets: [harbor({ fields: [accessKey], ...more })] });
export const source = (given: object) => ({ sources: [given], targets: [harbor({ fields: [accessKey] })] });
export const rollout = (given: object) => ({ sources: [bucket], targets: [], rollout: given });
