/** Generated from apis/vaultconnections.yaml by `npm run generate`. Do not edit. */
import type { ObjectMeta, OneOf } from "../apimachinery/objects.ts";

/** A VaultConnection defines the address of a Vault or OpenBao server, how SecretBindings log in to it, and which paths they may read. Without auth, bindings can read only the health of servers. */
export interface VaultConnection {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  /** The server, the login, and the paths that bindings may read. */
  spec: {
    /** The URL of the server, without a path, such as https://vault.vault.svc:8200. The configuration of Inlay must list it in vault.addresses. Inlay uses plain http only if the entry there starts with http://. */
    address: string;
    /** The namespace in Vault Enterprise or OpenBao. Defaults to the root namespace. */
    namespace?: string;
    /** How Inlay verifies the certificate of the server. The verification can't be turned off. */
    tls?: {
      /** The certificates, in PEM format, of the authorities that may sign the certificate of the server. Defaults to the public authorities of Node.js. Set exactly one of secret and configMap, in the namespace of the connection. */
      ca?: KeyReference;
      /** The host name in the certificate of the server. Defaults to the host of address. */
      serverName?: string;
    };
    /** The name of the ServiceAccount in this namespace that Inlay impersonates to read the Secrets and ConfigMaps that this connection names, and to log in if auth.kubernetes.as is Connection. For a name other than inlay, a RoleBinding in this namespace must allow Inlay to impersonate the account. Defaults to inlay. */
    serviceAccountName: string;
    /** How bindings log in. Set exactly one of kubernetes, appRole and token. */
    auth?: OneOf<{
      /** The Kubernetes auth method of Vault. Inlay impersonates the account to create a token for it, valid for audiences and for 10 minutes. The account needs create on serviceaccounts/token for itself. */
      kubernetes: {
        /** The path below auth/ where the auth method is mounted in Vault. */
        mount: string;
        /** The role in Vault. {namespace} is replaced by the namespace of the binding, or of the claim for a composed binding. */
        role: string;
        /** The audiences of the token. Set the same audience in the role in Vault, otherwise Vault accepts tokens for any audience. */
        audiences: string[];
        /** The account that logs in. Binding: the account of each binding, so that the policies of Vault decide for each. Connection: the account of this connection, for all bindings that may use it. Defaults to Binding. */
        as: "Binding" | "Connection";
      };
      /** The AppRole auth method of Vault. All bindings that may use this connection share the login. */
      appRole: {
        /** The path below auth/ where the auth method is mounted in Vault. */
        mount: string;
        /** The RoleID. It is not secret. */
        roleID: string;
        /** The SecretID. */
        secretID: {
          /** A key of a Secret in the namespace of the connection. */
          secret: ObjectKey;
        };
      };
      /** A Vault token. All bindings that may use this connection share it. Inlay renews it if Vault allows that, and never revokes it. Set exactly one of secret and configMap. */
      token: KeyReference;
    }>;
    /** The paths that bindings may read through this connection, as mount/path, whatever the policies of Vault allow. * matches any characters, and ? matches one character. {namespace} is replaced by the namespace of the binding, or of the claim for a composed binding. */
    paths?: string[];
    /** How long Inlay waits for each response, as a duration from 100ms to 60s. Defaults to 5s. */
    timeout: string;
  };
  /** The state of the server. */
  status?: {
    /** The generation of the spec that this status describes, or -1 before the first status. */
    observedGeneration?: number;
    /** The text of the annotation inlay.dev/refresh that Inlay handled last, at most 256 characters of it. */
    lastHandledRefresh?: string;
    /** Ready is True if the server answers and is unsealed, and the last login of the connection itself succeeded. Reconciling and Stalled, only while Ready is not True: whether Inlay retries, or a user must change something. A problem that a user must fix is Stalled after a minute. */
    conditions?: {
      /** Ready, Reconciling or Stalled. */
      type: "Ready" | "Reconciling" | "Stalled";
      /** True, False or Unknown. */
      status: "True" | "False" | "Unknown";
      /** A word that programs can compare. */
      reason: string;
      /** What is wrong and what to do. It never contains a value. */
      message: string;
      /** The generation of the spec that this condition describes. */
      observedGeneration?: number;
      /** When the status last changed. */
      lastTransitionTime: string;
    }[];
    /** The version that the server reports. */
    version?: string;
  };
}

export type KeyReference = OneOf<{
  /** A key of a Secret in the namespace of the connection. */
  secret: ObjectKey;
  /** A key of a ConfigMap in the namespace of the connection. */
  configMap: ObjectKey;
}>;

export interface ObjectKey {
  /** The name of the Secret. Or: The name of the ConfigMap. */
  name: string;
  /** The key in the object. */
  key: string;
}
