/** Generated from apis/vaultconnections.yaml by `npm run generate`. Do not edit. */

/** A VaultConnection says where a Vault or OpenBao server is, how SecretBindings log in to it, and which paths they may read through it. Without auth, bindings read only the health of servers through it. */
export interface VaultConnection {
  apiVersion: string;
  kind: string;
  metadata: import("../apimachinery/objects.ts").ObjectMeta;
  /** The server, the login, and what may be read. */
  spec: {
    /** The URL of the server, without a path, such as https://vault.vault.svc:8200. The configuration of Inlay has to list it in vault.addresses. Inlay uses plain http only where an entry there starts with http://. */
    address: string;
    /** The namespace in Vault, as Vault Enterprise and OpenBao have them. The root namespace unless given. */
    namespace?: string;
    /** How the server proves what it is. Nothing turns this check off. */
    tls?: {
      /** The certificates, as PEM, that may sign the server's. Unless given, those of public authorities, which Node.js brings. Exactly one of secret and configMap, in the namespace of the connection. */
      ca?:
        | {
            /** A key of a Secret in the namespace of the connection. */
            secret: {
              /** Its name. */
              name: string;
              /** The key in it. */
              key: string;
            };
            configMap?: never;
          }
        | {
            secret?: never;
            /** A key of a ConfigMap in the namespace of the connection. */
            configMap: {
              /** Its name. */
              name: string;
              /** The key in it. */
              key: string;
            };
          };
      /** The name that the server's certificate is for. The host of the address unless given. */
      serverName?: string;
    };
    /** The ServiceAccount of this namespace as which Inlay reads the Secrets and ConfigMaps that this connection names, and logs in where auth.kubernetes.as is Connection. An account of another name than inlay must be opened to Inlay by a RoleBinding in this namespace. */
    serviceAccountName: string;
    /** How bindings log in. Exactly one of kubernetes, appRole and token. */
    auth?:
      | {
          /** Vault's Kubernetes auth method. The account asks the API server for a token of its own, for these audiences and 10 minutes, so it needs the permission create on serviceaccounts/token for itself. */
          kubernetes: {
            /** Where the auth method is mounted in Vault, below auth/. */
            mount: string;
            /** The role in Vault. {namespace} stands for the namespace of the binding, or of the claim that a BindingComposition makes it for. */
            role: string;
            /**
             * For whom the token is. Give the role in Vault the same audience, or Vault accepts a token for any.
             *
             * @minItems 1
             * @maxItems 8
             */
            audiences: string[];
            /** Who logs in. Binding: the account of each binding, so that Vault's policies decide for each. Connection: the account of this connection, for all bindings that may use it. */
            as: "Binding" | "Connection";
          };
          appRole?: never;
          token?: never;
        }
      | {
          kubernetes?: never;
          /** Vault's AppRole auth method. All bindings that may use this connection share the login. */
          appRole: {
            /** Where the auth method is mounted in Vault, below auth/. */
            mount: string;
            /** The RoleID. It is no secret. */
            roleID: string;
            /** Where the SecretID is. */
            secretID: {
              /** A key of a Secret in the namespace of the connection. */
              secret: {
                /** Its name. */
                name: string;
                /** The key in it. */
                key: string;
              };
            };
          };
          token?: never;
        }
      | {
          kubernetes?: never;
          appRole?: never;
          /** A token as it is. All bindings that may use this connection share it. Inlay renews it where Vault allows that, and never revokes it. Exactly one of secret and configMap. */
          token:
            | {
                /** A key of a Secret in the namespace of the connection. */
                secret: {
                  /** Its name. */
                  name: string;
                  /** The key in it. */
                  key: string;
                };
                configMap?: never;
              }
            | {
                secret?: never;
                /** A key of a ConfigMap in the namespace of the connection. */
                configMap: {
                  /** Its name. */
                  name: string;
                  /** The key in it. */
                  key: string;
                };
              };
        };
    /**
     * What bindings may read through this connection, as mount/path, whatever Vault's policies allow. * stands for any characters and ? for one; {namespace} for the namespace of the binding, or of the claim that a BindingComposition makes it for.
     *
     * @minItems 1
     * @maxItems 64
     */
    paths?: string[];
    /** How long Inlay waits for an answer, from 100ms to 60s. */
    timeout: string;
  };
  /** What Inlay knows of the server. */
  status?: {
    /** Ready is true when the server answers, is unsealed, and the last login that this connection makes by itself succeeded. */
    conditions?: {
      /** Ready. */
      type: "Ready";
      /** Whether it holds. */
      status: "True" | "False" | "Unknown";
      /** One word that programs can compare. */
      reason: string;
      /** What is wrong, and what to do. Never a value. */
      message: string;
      /** The generation of the spec that this condition is about. */
      observedGeneration?: number;
      /** Since when the status is what it is. */
      lastTransitionTime: string;
    }[];
    /** The version that the server reports. */
    version?: string;
  };
}
