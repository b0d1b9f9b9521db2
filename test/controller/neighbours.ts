/** Two teams, of which one reads Secrets of the other through SecretGrants. */
import assert from "node:assert/strict";
import type { AnyObject } from "./api.ts";
import { eventually } from "./eventually.ts";
import { secretText } from "./leak-detector.ts";
import { loggedUntilNow } from "./requests.ts";
import { createNamespace, harborTarget, type Rule, type TestNamespace } from "./test-namespace.ts";

/** A name that the selector of `TestNamespace.barrier` does not match. */
const PULSE = "pulses";
const mayRead: Rule[] = [{ apiGroups: [""], resources: ["secrets", "configmaps"], verbs: ["get", "list", "watch"] }];

export class Neighbours {
  /** The team with the Secret. */
  readonly owner: TestNamespace;
  /** The team with the binding. */
  readonly reader: TestNamespace;

  constructor(owner: TestNamespace, reader: TestNamespace) {
    this.owner = owner;
    this.reader = reader;
  }

  /** Creates or rotates the owner's Secret `bucket`. Returns its access key. */
  async rotate(name = "bucket"): Promise<string> {
    const accessKeyID = secretText("access");
    await this.owner.secret(name, { accessKeyID });
    return accessKeyID;
  }

  /** Creates a grant of the owner's Secret `bucket` to the reader, unless `spec` says otherwise. */
  grant(name = "bucket", { from, to }: { from?: object[]; to?: object[] } = {}): Promise<AnyObject> {
    return this.owner.api.create(this.owner.path("inlay.dev/v1alpha1", "secretgrants"), {
      apiVersion: "inlay.dev/v1alpha1",
      kind: "SecretGrant",
      metadata: { name },
      spec: {
        from: from ?? [{ namespace: this.reader.namespace }],
        to: to ?? [{ kind: "Secret", name: "bucket" }],
      },
    });
  }

  grantPath(name = "bucket"): string {
    return `${this.owner.path("inlay.dev/v1alpha1", "secretgrants")}/${name}`;
  }

  withdraw(name = "bucket"): Promise<AnyObject> {
    return this.owner.api.delete(this.grantPath(name));
  }

  /** A Secret of the owner as a source of the reader, which needs a grant. */
  secretOf(name: string): object {
    const { owner, reader } = this;
    return owner === reader ? { name, granted: true } : { name, namespace: owner.namespace };
  }

  /** The spec of a binding that writes the access key of the owner's Secret into the reader's HarborCluster. */
  spec(source: object = {}, more: object = {}): object {
    return {
      sources: [{ secret: this.secretOf("bucket"), ...source }],
      targets: [harborTarget({ accesskey: { from: { source: "bucket", key: "accessKeyID" } } })],
      ...more,
    };
  }

  /**
   * Waits until the controller has processed all earlier changes of SecretGrants, and of those Secrets of the owner that the
   * reader watches. A binding of its own gets a grant, follows a rotation, and loses the grant. Each step depends on one watch,
   * and a watch delivers changes in order.
   */
  async barrier(): Promise<void> {
    const { reader } = this;
    await this.grant(PULSE, { to: [{ kind: "Secret", name: PULSE }] });
    if (!(await reader.api.find(reader.bindingPath(PULSE)))) {
      await this.rotate(PULSE);
      await reader.harbor(PULSE);
      const fields = { accesskey: { from: { source: PULSE, key: "accessKeyID" } } };
      await reader.bind(PULSE, {
        sources: [{ secret: this.secretOf(PULSE) }],
        targets: [harborTarget(fields, { name: PULSE })],
      });
    }
    await reader.until(PULSE, "Synced");
    const value = await this.rotate(PULSE);
    await eventually(async () => assert.equal((await reader.s3(PULSE)).accesskey, value));
    await this.withdraw(PULSE);
    await reader.until(PULSE, "GrantWithdrawn");
    await reader.controller.idle();
    await loggedUntilNow(reader);
  }

  /** Waits until the reader's HarborCluster has that access key, or none. */
  async untilHeld(value: string | undefined, withinMs?: number): Promise<void> {
    await eventually(async () => assert.equal((await this.reader.s3()).accesskey, value), withinMs);
  }
}

/**
 * Creates an owner with the Secret `bucket`, and a reader with a HarborCluster and an account that may read the owner's objects.
 */
export async function newNeighbours({ rights = true } = {}): Promise<{ both: Neighbours; value: string }> {
  const [owner, reader] = [await createNamespace(), await createNamespace()];
  const both = new Neighbours(owner, reader);
  const value = await both.rotate();
  await reader.harbor();
  if (rights) await reader.grant(mayRead, { role: `${reader.namespace}-reads`, namespace: owner.namespace });
  return { both, value };
}

/** One namespace is owner and reader: its bindings read its own Secrets through grants. */
export async function newOwnReader(): Promise<{ both: Neighbours; value: string }> {
  const team = await createNamespace();
  const both = new Neighbours(team, team);
  const value = await both.rotate();
  await team.harbor();
  return { both, value };
}

/** Creates neighbours with a grant of the owner's Secret, and a binding of the reader that copies its value. */
export async function newGranted(
  source: object = {},
  grant: Parameters<Neighbours["grant"]>[1] = {},
): Promise<{ both: Neighbours; value: string }> {
  const { both, value } = await newNeighbours();
  await both.grant("bucket", grant);
  await both.reader.bind("harbor-s3", both.spec(source));
  await both.untilHeld(value);
  await both.reader.until("harbor-s3", "Synced");
  return { both, value };
}
