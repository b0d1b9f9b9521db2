/** What reading a source gives: the stage that reads makes it, the stage that shapes values takes it. No I/O. */
import type { JsonObject } from "./kube-object.ts";
import type { SecretValue } from "./secret-value.ts";

/**
 * A source as it was read, all of it at once. `data`: a Secret or ConfigMap, its keys with decoded bytes. `object`: any
 * other object. `description` names it in messages, such as `Secret registry/bucket`.
 */
export type LiveSource =
  | {
      readonly kind: "data";
      readonly description: string;
      readonly data: ReadonlyMap<string, SecretValue<Uint8Array>>;
    }
  | { readonly kind: "object"; readonly description: string; readonly object: SecretValue<JsonObject> };
