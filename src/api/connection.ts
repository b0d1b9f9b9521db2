/** Names for the parts of a VaultConnection. */
import type { KeyReference, VaultConnection } from "./vault-connection.ts";

export type { KeyReference, VaultConnection };
export type ConnectionSpec = VaultConnection["spec"];
export type ConnectionStatus = NonNullable<VaultConnection["status"]>;
