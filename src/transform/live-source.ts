/** Defines a source as it was read. */
import type { JsonObject } from "../apimachinery/objects.ts";
import type { MissingPolicy, MissingValue } from "../apimachinery/problem.ts";
import type { SecretValue } from "../apimachinery/secret-value.ts";

/**
 * A source as it was read, by one read. `data`: the keys of a Secret or ConfigMap with decoded bytes. `object`: any
 * other object. `absent`: the object does not exist, or the binding may not read it. `description` names it in
 * messages, such as `Secret registry/bucket`.
 */
export type LiveSource = {
  readonly description: string;
  /** Changes with any part of the content. */
  readonly version: string;
  /** What happens to fields whose value is missing in it. */
  readonly policy: MissingPolicy;
} & (
  | (Metadata & {
      readonly kind: "data";
      readonly isSecret: boolean;
      /** The ServiceAccount whose token the Secret contains. */
      readonly tokenOf?: string;
      readonly data: ReadonlyMap<string, SecretValue<Uint8Array>>;
      /** The type of a Secret. */
      readonly type?: string;
      /** The keys in `binaryData` of a ConfigMap. */
      readonly binary?: ReadonlySet<string>;
      /** Each value is a list of the versions that pods have, one in each line. */
      readonly isVersions?: true;
    })
  | (Metadata & { readonly kind: "object"; readonly object: SecretValue<JsonObject> })
  | {
      readonly kind: "absent";
      readonly problem: MissingValue;
      /** A SecretProviderClass that no pod mounts now. */
      readonly isUnmounted?: true;
    }
);

/** A source that does not exist, or that the binding may not read. */
export const absentSource = (description: string, problem: MissingValue, version = "none") =>
  ({ kind: "absent", description, version, policy: problem.policy, problem }) satisfies LiveSource;

type Metadata = {
  readonly annotations: Texts;
  readonly labels: Texts;
  /** Set for an object of the cluster. */
  readonly resourceVersion?: string;
  /** The binding may read it only because of a SecretGrant. */
  readonly isGranted?: true;
};

/** Sealed, because kubectl stores whole objects in an annotation. */
type Texts = SecretValue<Readonly<Record<string, string>>>;
