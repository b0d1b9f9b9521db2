/** Generated from apis/secretgrants.yaml by `npm run generate`. Do not edit. */

/** A SecretGrant lets SecretBindings of other namespaces read Secrets and ConfigMaps of this one, and those of this namespace whose source says granted. It is the half of the consent that this namespace gives; the account of a binding needs its own right to read them too. */
export interface SecretGrant {
  apiVersion: string;
  kind: string;
  metadata: import("../apimachinery/objects.ts").ObjectMeta;
  /** Who may read, and what. Each of from may read each of to. */
  spec: {
    /**
     * Who may read. Any one of these is enough.
     *
     * @minItems 1
     * @maxItems 64
     *
     * Items: The bindings of one namespace, of those that match, or of a BindingComposition. Exactly one of namespace, namespaceSelector and composition.
     */
    from: (
      | {
          /** The namespace in which the bindings stand. */
          namespace: string;
          /** The metadata.uid of that namespace. A namespace that is created later under the same name has another uid, and this entry does not let its bindings read. Without it, the name alone decides. */
          namespaceUID?: string;
          namespaceSelector?: never;
          composition?: never;
          /** Only bindings that act as the account of this name. Any account unless given. */
          serviceAccountName?: string;
        }
      | {
          namespace?: never;
          /** The metadata.uid of that namespace. A namespace that is created later under the same name has another uid, and this entry does not let its bindings read. Without it, the name alone decides. */
          namespaceUID?: string;
          /** The namespaces that match all that is given, as they are at the moment. Anyone who may label or name a namespace so gets access. A selector never matches the namespace of the grant itself. */
          namespaceSelector: {
            /**
             * The name is one of these, in which * stands for any characters and ? for one.
             *
             * @minItems 1
             * @maxItems 16
             */
            names?: string[];
            /**
             * The name is none of these, in which * stands for any characters and ? for one.
             *
             * @minItems 1
             * @maxItems 16
             */
            exceptNames?: string[];
            /** Each of these labels has this value. */
            matchLabels?: {
              [k: string]: string;
            };
            /**
             * Each of these holds.
             *
             * @minItems 1
             * @maxItems 16
             */
            matchExpressions?: {
              /** The label that is asked about. */
              key: string;
              /** How it is to be. In and NotIn compare it with values; Exists and DoesNotExist ask whether it is there. */
              operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
              /**
               * What In and NotIn compare with.
               *
               * @maxItems 64
               */
              values?: string[];
            }[];
          };
          composition?: never;
          /** Only bindings that act as the account of this name. Any account unless given. */
          serviceAccountName?: string;
        }
      | {
          namespace?: never;
          /** The metadata.uid of that namespace. A namespace that is created later under the same name has another uid, and this entry does not let its bindings read. Without it, the name alone decides. */
          namespaceUID?: string;
          namespaceSelector?: never;
          /** The name of a BindingComposition. Its bindings may read, in whatever namespace they are: those that Inlay computes from its claims at the moment, and no others that carry its label. */
          composition: string;
          /** Only bindings that act as the account of this name. Any account unless given. */
          serviceAccountName?: string;
        }
    )[];
    /**
     * What may be read, of this namespace. Who makes or changes a grant must be allowed to get all of it himself.
     *
     * @minItems 1
     * @maxItems 16
     *
     * Items: One object, or all that match. Exactly one of name and selector.
     */
    to: (
      | {
          /** Secret, ConfigMap or VaultConnection. Bindings may use a VaultConnection, not read it. */
          kind: "Secret" | "ConfigMap" | "VaultConnection";
          /** Its name. */
          name: string;
          selector?: never;
        }
      | {
          /** Secret, ConfigMap or VaultConnection. Bindings may use a VaultConnection, not read it. */
          kind: "Secret" | "ConfigMap" | "VaultConnection";
          name?: never;
          /** The objects that match all that is given, as they are at the moment. Anyone who may label or name an object so opens it. */
          selector: {
            /**
             * The name is one of these, in which * stands for any characters and ? for one.
             *
             * @minItems 1
             * @maxItems 16
             */
            names?: string[];
            /**
             * The name is none of these, in which * stands for any characters and ? for one.
             *
             * @minItems 1
             * @maxItems 16
             */
            exceptNames?: string[];
            /** Each of these labels has this value. */
            matchLabels?: {
              [k: string]: string;
            };
            /**
             * Each of these holds.
             *
             * @minItems 1
             * @maxItems 16
             */
            matchExpressions?: {
              /** The label that is asked about. */
              key: string;
              /** How it is to be. In and NotIn compare it with values; Exists and DoesNotExist ask whether it is there. */
              operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
              /**
               * What In and NotIn compare with.
               *
               * @maxItems 64
               */
              values?: string[];
            }[];
          };
        }
    )[];
  };
}
