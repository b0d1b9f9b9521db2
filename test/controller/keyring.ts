/** The key of an installation as its controller has it: whose account comes in, and as what that account reads and makes it. */
import { Client } from "../../src/kube/client.ts";
import { loadCredentials } from "../../src/kube/credentials.ts";
import { Transport } from "../../src/kube/transport.ts";
import { DigestKeys } from "../../src/rollout/digest/keys.ts";
import { controlPlane } from "../control-plane/shared.ts";

export type KeyClient = ConstructorParameters<typeof DigestKeys>[0];

export class Keyring {
  readonly namespace: string;
  readonly client: KeyClient;
  readonly #transport: Transport;

  private constructor(namespace: string, transport: Transport) {
    this.namespace = namespace;
    this.#transport = transport;
    this.client = new Client(transport);
  }

  /** With the rights of the account that deploy/ makes there, and no other. */
  static async open(namespace = "inlay-system"): Promise<Keyring> {
    const file = await controlPlane().kubeconfigForServiceAccount(namespace, "inlay-controller");
    return new Keyring(namespace, new Transport(await loadCredentials(file)));
  }

  /** As another process has it that has just begun. */
  start(client = this.client): DigestKeys {
    return new DigestKeys(client, this.namespace);
  }

  close(): Promise<void> {
    return this.#transport.close();
  }
}
