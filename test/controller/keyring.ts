/** The digest key of an installation, created and read as the account of its controller. */
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

  /** Uses the account with the permissions of the shipped manifests, and no others. */
  static async open(namespace = "inlay-system"): Promise<Keyring> {
    const file = await controlPlane().kubeconfigForServiceAccount(namespace, "inlay-controller");
    return new Keyring(namespace, new Transport(await loadCredentials(file)));
  }

  /** Reads the key as a new process does. */
  start(client = this.client): DigestKeys {
    return new DigestKeys(client, this.namespace);
  }

  close(): Promise<void> {
    return this.#transport.close();
  }
}
