/** Generated from apis/secretbindings.yaml by `npm run generate`. Do not edit. */

/**
 * A SecretBinding copies values out of Secrets, ConfigMaps and fields of other objects into fields of any object, keeps them there, and undoes them.
 */
export interface SecretBinding {
  apiVersion: string;
  kind: string;
  metadata: import("./kube-object.ts").ObjectMeta;
  spec: {
    /**
     * The ServiceAccount of this namespace as which every source is read and every target is written. Its own RBAC decides what this binding may do. An account of another name than inlay must be opened to Inlay by a RoleBinding in this namespace.
     */
    serviceAccountName: string;
    /**
     * What holds for every target that does not say otherwise.
     */
    defaults: {
      /**
       * What to do when another field manager owns a field that is to be written for the first time. Fail reports the manager and writes nothing; Force takes the field over.
       */
      conflicts: "Fail" | "Force";
      /**
       * What becomes of a written field when the binding, the target or the field is removed from here. Retain leaves the value and gives up its ownership; Remove takes the value out again.
       */
      onRelease: "Retain" | "Remove";
    };
    /**
     * Where values are read, by name.
     *
     * @minItems 1
     * @maxItems 16
     *
     * Items: One object to read. Exactly one of secret, configMap and object.
     */
    sources: (
      | {
          /**
           * The name by which fields and templates call this source; that of the object unless given.
           */
          name?: string;
          /**
           * A Secret of this namespace.
           */
          secret: {
            name: string;
          };
          configMap?: never;
          object?: never;
        }
      | {
          /**
           * The name by which fields and templates call this source; that of the object unless given.
           */
          name?: string;
          secret?: never;
          /**
           * A ConfigMap of this namespace.
           */
          configMap: {
            name: string;
          };
          object?: never;
        }
      | {
          /**
           * The name by which fields and templates call this source; that of the object unless given.
           */
          name?: string;
          secret?: never;
          configMap?: never;
          /**
           * Any other object of this namespace, or of the cluster. Never a Secret or ConfigMap.
           */
          object: {
            /**
             * Group and version, such as v1 or apps/v1.
             */
            apiVersion: string;
            /**
             * The plural that kubectl api-resources lists, such as services.
             */
            resource: string;
            name: string;
            /**
             * Whether the object stands in this namespace or belongs to the cluster.
             */
            scope: "Namespaced" | "Cluster";
          };
        }
    )[];
    /**
     * The objects to write into. They must exist; a binding never creates one by accident.
     *
     * @minItems 1
     * @maxItems 64
     */
    targets: {
      /**
       * Group and version, such as goharbor.io/v1beta1.
       */
      apiVersion: string;
      kind: string;
      name: string;
      /**
       * The target's namespace, the binding's own unless given. Not for cluster-scoped kinds.
       */
      namespace?: string;
      /**
       * Overrides spec.defaults.conflicts for this target.
       */
      conflicts?: "Fail" | "Force";
      /**
       * Overrides spec.defaults.onRelease for this target.
       */
      onRelease?: "Retain" | "Remove";
      /**
       * What to write, all of it in one request.
       *
       * @minItems 1
       * @maxItems 64
       *
       * Items: One field. Exactly one of from and template.
       */
      fields: (
        | {
            /**
             * The field's path from the object's root, such as spec.storage.spec.s3.accesskey. A key with dots or slashes is quoted, as in metadata.annotations["example.com/key"].
             */
            path: string;
            /**
             * One value as it is. key for a Secret or ConfigMap, fieldPath for an object.
             */
            from:
              | {
                  source: string;
                  key: string;
                  fieldPath?: never;
                }
              | {
                  source: string;
                  key?: never;
                  fieldPath: string;
                };
            template?: never;
          }
        | {
            /**
             * The field's path from the object's root, such as spec.storage.spec.s3.accesskey. A key with dots or slashes is quoted, as in metadata.annotations["example.com/key"].
             */
            path: string;
            from?: never;
            /**
             * Text with values in it, in Handlebars' syntax, such as https://{{bucket.host}}. A key with dots is written as {{bucket.[tls.crt]}}.
             */
            template: string;
          }
      )[];
    }[];
  };
  status?: {
    /**
     * The generation of the spec that this status speaks of.
     */
    observedGeneration?: number;
    /**
     * How many targets hold the current values, of how many, such as 2/3.
     */
    synced?: string;
    conditions?: {
      type: string;
      status: "True" | "False" | "Unknown";
      reason: string;
      message: string;
      lastTransitionTime: string;
      observedGeneration?: number;
    }[];
    /**
     * Every object that is or was written, with the record of what there is this binding's.
     */
    targets?: {
      apiVersion: string;
      kind: string;
      namespace?: string;
      name: string;
      /**
       * The uid of the object that paths, acquiring and parents speak of.
       */
      uid?: string;
      /**
       * Synced, or why it is not.
       */
      reason: string;
      message?: string;
      /**
       * What becomes of paths when this target is no longer named.
       */
      onRelease?: "Retain" | "Remove";
      /**
       * The fields that this binding holds. Never a value.
       */
      paths?: string[];
      /**
       * The fields that are about to be written for the first time. Released like paths, never forced.
       */
      acquiring?: string[];
      /**
       * The objects that came to be on the way to a path, removed with it when they are left empty.
       */
      parents?: string[];
    }[];
  };
}
