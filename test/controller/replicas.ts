/** Replicas of the controller with leader election. A test ends the leader, and measures how long it takes until another one leads. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { controlPlane } from "../control-plane/shared.ts";
import type { Api } from "./api.ts";
import { ControllerProcess } from "./controller.ts";
import { eventually } from "./eventually.ts";

const LEASE = "/apis/coordination.k8s.io/v1/namespaces/inlay-system/leases/inlay-controller";

/** The time until another replica leads on a very busy machine. Tests assert a shorter time. */
const LEADS_WITHIN_MS = 60_000;

/** When this process began to lead, by its own log. Undefined if it never did. */
export function leadingSince({ output }: Pick<ControllerProcess, "output">): number | undefined {
  const line = output.split("\n").find((each) => each.includes('"msg":"leading"'));
  return line === undefined ? undefined : Date.parse(JSON.parse(line).time);
}

/** A replica with a token of its own, by which the audit log identifies its requests. */
export class Replica extends ControllerProcess {
  readonly #token: { id?: string };

  constructor() {
    const token: { id?: string } = {};
    super(
      {
        async kubeconfigForServiceAccount(...of) {
          const file = await controlPlane().kubeconfigForServiceAccount(...of);
          token.id = tokenIdIn(await readFile(file, "utf8"));
          return file;
        },
      },
      "--leader-elect",
    );
    this.#token = token;
  }

  /** As in the audit log. */
  get credential(): string {
    return `JTI=${this.#token.id}`;
  }
}

function tokenIdIn(kubeconfig: string): string {
  const payload = /"?token"?: "?[\w-]+\.([\w-]+)\./.exec(kubeconfig)?.[1] ?? assert.fail("no token of an account");
  return JSON.parse(Buffer.from(payload, "base64url").toString()).jti;
}

export class Replicas {
  readonly #api: Pick<Api, "get">;
  #running: Replica[] = [];

  private constructor(api: Pick<Api, "get">) {
    this.#api = api;
  }

  static async start(api: Pick<Api, "get">, count: number): Promise<Replicas> {
    const replicas = new Replicas(api);
    while (replicas.#running.length < count) await replicas.#add();
    return replicas;
  }

  /** The replica that holds the Lease, once it runs and leads. */
  leader(withinMs = LEADS_WITHIN_MS): Promise<Replica> {
    return eventually(async () => {
      const { holderIdentity } = (await this.#api.get(LEASE)).spec;
      const leader = this.#running.find(
        ({ isRunning, output }) => isRunning && output.includes(`"identity":"${holderIdentity}"`),
      );
      return leader ?? assert.fail("the holder of the Lease does not run");
    }, withinMs);
  }

  /** Sends a signal that ends or stops the leader. Returns it, and the milliseconds until another replica leads. */
  async failOver(signal: "SIGKILL" | "SIGSTOP"): Promise<{ former: Replica; ms: number }> {
    const former = await this.leader();
    this.#running = this.#running.filter((each) => each !== former);
    const from = Date.now();
    former.signal(signal);
    const at = await eventually(
      () => this.#running.map(leadingSince).find((since = 0) => since >= from) ?? assert.fail("no replica leads"),
      LEADS_WITHIN_MS,
    );
    return { former, ms: at - from };
  }

  /**
   * Starts a replica for each that has ended or that `failOver` has removed, as the kubelet does. On a busy machine, a leader may lose its
   * lease at any time. So call this while you wait for something.
   */
  async replace(count: number): Promise<void> {
    this.#running = this.#running.filter(({ isRunning }) => isRunning);
    while (this.#running.length < count) await this.#add();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.map((each) => each.stop()));
  }

  async #add(): Promise<void> {
    const replica = new Replica();
    this.#running.push(replica);
    await replica.start();
  }
}
