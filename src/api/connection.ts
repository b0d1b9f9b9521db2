/** Names for the parts of a VaultConnection. */
import type { VaultConnection } from "./vault-connection.ts";

export type { VaultConnection };
export type ConnectionSpec = VaultConnection["spec"];
export type ConnectionStatus = NonNullable<VaultConnection["status"]>;
/** A key of a Secret or of a ConfigMap in the namespace of the connection. */
export type KeyReference = NonNullable<NonNullable<ConnectionSpec["tls"]>["ca"]>;
