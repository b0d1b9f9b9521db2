/** Defines a source as it was read. Types only. */
import type { JsonObject } from "../apimachinery/objects.ts";
import type { MissingPolicy, MissingValue } from "../apimachinery/problem.ts";
import type { SecretValue } from "../apimachinery/secret-value.ts";

/**
 * A source as it was read, all of it at once. `data`: a Secret or ConfigMap, its keys with decoded bytes. `object`: any
 * other object. `absent`: there is no such object, or none that the binding may take values of. `description` names it in messages, such as `Secret registry/bucket`.
 */
export type LiveSource = {
  readonly description: string;
  /** Changes with all that is in it. */
  readonly version: string;
  /** What becomes of the fields that need what is not in it. */
  readonly policy: MissingPolicy;
} & (
  | (Metadata & {
      readonly kind: "data";
      readonly isSecret: boolean;
      /** The ServiceAccount whose token a Secret holds. */
      readonly tokenOf?: string;
      readonly data: ReadonlyMap<string, SecretValue<Uint8Array>>;
      /** Each value is a list of versions, one in a line: those that pods have. */
      readonly isVersions?: true;
    })
  | (Metadata & { readonly kind: "object"; readonly object: SecretValue<JsonObject> })
  | {
      readonly kind: "absent";
      readonly problem: MissingValue;
      /** It is a SecretProviderClass that no pod mounts at the moment. */
      readonly isUnmounted?: true;
    }
);

type Metadata = {
  readonly annotations: Texts;
  readonly labels: Texts;
  /** Of an object of the cluster. */
  readonly resourceVersion?: string;
  /** The binding may read it by a SecretGrant alone. */
  readonly isGranted?: true;
};

/** Sealed, since kubectl keeps whole objects in an annotation. */
type Texts = SecretValue<Readonly<Record<string, string>>>;
