/** The settings and services of a connection to a Vault server. Types only. */
import type { LookupAddress } from "node:dns";
import type { VaultAddresses } from "../api/vault-addresses.ts";
import type { SecretValue } from "../apimachinery/secret-value.ts";
import type { Identity } from "../kube/identity.ts";
import type { CpuScheduler } from "../workqueue/cpu-scheduler.ts";

export interface ConnectionSettings {
  /** The namespace and the name of the VaultConnection, such as registry/vault. */
  readonly key: string;
  readonly address: URL;
  /** The namespace in Vault. */
  readonly namespace?: string | undefined;
  /** Certificates in PEM. By default, the authorities that Node trusts. */
  readonly ca?: string | undefined;
  /** The name in the server's certificate, if it differs from the address. */
  readonly serverName?: string | undefined;
  /** The deadline of a request, including its time in the queue. */
  readonly timeoutMs: number;
  /** Without it, only the health of servers can be read. */
  readonly auth?: Auth | undefined;
}

export type Auth =
  | {
      readonly kind: "kubernetes";
      /** Below auth/. */
      readonly mount: string;
      /** May contain {namespace}, for the namespace of the reader. */
      readonly role: string;
      readonly audiences: readonly string[];
      /** The account that logs in for all readers. By default, each reader logs in with its own account. */
      readonly as?: Identity | undefined;
    }
  | {
      readonly kind: "appRole";
      readonly mount: string;
      readonly roleID: string;
      readonly secretID: SecretValue<string>;
    }
  | { readonly kind: "token"; readonly token: SecretValue<string> };

/** The purpose of a request, as in the metrics. */
export type Operation = "login" | "renew" | "revoke" | "lookup" | "data" | "metadata" | "health";

export interface VaultCounts {
  /** `code` is the status of the answer, or timeout, refused, tls or error. */
  requested(operation: Operation, code: string): void;
  loggedIn(outcome: "success" | "failure"): void;
  readSeconds(seconds: number): void;
}

export interface ConnectionServices {
  readonly addresses: Pick<VaultAddresses, "refusal" | "refusalOf">;
  /** A token of the account for these audiences. Throws Problem. */
  requestToken(identity: Identity, audiences: readonly string[]): Promise<SecretValue<string>>;
  readonly metrics: VaultCounts;
  /** Runs work whose size others choose, on behalf of a namespace. */
  readonly cpu: Pick<CpuScheduler, "run">;
  /** Called when a read failed in a way that a check of the server may explain. */
  readonly doubted?: () => void;
  /** Called when a binding reads through the connection, which was not used before. */
  readonly used?: () => void;
  /** A monotonic clock in ms. */
  readonly now?: () => number;
  /** Returns numbers from 0 to 1. */
  readonly random?: () => number;
  /** Resolves a host name, for the connection with that key. */
  readonly resolve?: Resolve;
}

export type Resolve = (host: string, key: string) => Promise<readonly LookupAddress[]>;
