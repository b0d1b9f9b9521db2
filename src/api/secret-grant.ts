/** Generated from apis/secretgrants.yaml by `npm run generate`. Do not edit. */

/** A SecretGrant permits SecretBindings of other namespaces to read Secrets and ConfigMaps of its own namespace, and to use its VaultConnections. It also permits bindings of its own namespace whose source sets granted. To read an object, the account of the binding needs the RBAC permission too. */
export interface SecretGrant {
  apiVersion: string;
  kind: string;
  metadata: import("../apimachinery/objects.ts").ObjectMeta;
  /** The bindings that may read, and the objects that they may read. Each entry of from may read each entry of to. */
  spec: {
    /**
     * The bindings that may read. A binding must match at least one entry.
     *
     * Items: The bindings of one namespace, of all matching namespaces, or of a BindingComposition. Set exactly one of namespace, namespaceSelector and composition.
     */
    from: ({
      /** The metadata.uid of the namespace. A namespace that is created later with the same name has another uid, and this entry does not match it. If unset, only the name counts. */
      namespaceUID?: string;
      /** The name of the service account of the bindings. Defaults to any account. */
      serviceAccountName?: string;
    } & (
      | {
          /** The namespace of the bindings. */
          namespace: string;
          namespaceSelector?: never;
          composition?: never;
        }
      | {
          namespace?: never;
          /** Selects the namespaces that match all criteria at the time of each read. Users who may set the names or labels of namespaces can get access. A selector never matches the namespace of the grant. */
          namespaceSelector: {
            /** The name must match one of these patterns; * matches any characters, and ? matches one character. */
            names?: string[];
            /** The name must match none of these patterns; * matches any characters, and ? matches one character. */
            exceptNames?: string[];
            /** The object must have all these labels with these values. */
            matchLabels?: MatchLabels;
            /** The labels must meet all these requirements. */
            matchExpressions?: MatchExpression[];
          };
          composition?: never;
        }
      | {
          namespace?: never;
          namespaceSelector?: never;
          /** The name of a BindingComposition. Its current bindings may read, in any namespace. Inlay computes them from the claims; a binding that only has the label of the composition does not match. */
          composition: string;
        }
    ))[];
    /**
     * The objects in this namespace that the bindings may read. To create or change a grant, you must be allowed to get all of them yourself, or to use them for VaultConnections.
     *
     * Items: One object, or all matching objects. Set exactly one of name and selector.
     */
    to: ({
      /** Secret, ConfigMap or VaultConnection. Bindings may use a VaultConnection, not read it. */
      kind: "Secret" | "ConfigMap" | "VaultConnection";
    } & (
      | {
          /** The name of the object. */
          name: string;
          selector?: never;
        }
      | {
          name?: never;
          /** Selects the objects that match all criteria at the time of each read. Users who may set the names or labels of objects can grant access to them. */
          selector: {
            /** The name must match one of these patterns; * matches any characters, and ? matches one character. */
            names?: string[];
            /** The name must match none of these patterns; * matches any characters, and ? matches one character. */
            exceptNames?: string[];
            /** The object must have all these labels with these values. */
            matchLabels?: MatchLabels;
            /** The labels must meet all these requirements. */
            matchExpressions?: MatchExpression[];
          };
        }
    ))[];
  };
}

export interface MatchLabels {
  [k: string]: string;
}

export interface MatchExpression {
  /** The key of the label. */
  key: string;
  /** In and NotIn compare the value of the label with values. Exists and DoesNotExist check whether the label exists. */
  operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  /** The values for In and NotIn. */
  values?: string[];
}
