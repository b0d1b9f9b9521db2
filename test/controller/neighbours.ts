/** Two teams, of which one reads what is the other's: what is granted comes in, SecretGrants and bindings go out. */
import assert from "node:assert/strict";
import type { AnyObject } from "./api.ts";
import { eventually } from "./eventually.ts";
import { secretText } from "./leak-detector.ts";
import { loggedUntilNow } from "./requests.ts";
import { createNamespace, harborTarget, type Rule, type TestNamespace } from "./test-namespace.ts";

/** Not one of the names that `TestNamespace.barrier` selects. */
const PULSE = "pulses";
const mayRead: Rule[] = [{ apiGroups: [""], resources: ["secrets", "configmaps"], verbs: ["get", "list", "watch"] }];

export class Neighbours {
  /** Whose Secret it is. */
  readonly owner: TestNamespace;
  /** Whose binding reads it. */
  readonly reader: TestNamespace;

  constructor(owner: TestNamespace, reader: TestNamespace) {
    this.owner = owner;
    this.reader = reader;
  }

  /** Rotates the owner's Secret `bucket`, or makes it. Returns its access key. */
  async rotate(name = "bucket"): Promise<string> {
    const accessKeyID = secretText("access");
    await this.owner.secret(name, { accessKeyID });
    return accessKeyID;
  }

  /** The owner lets the reader read his Secret `bucket`, unless something else is said. */
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

  /** A Secret of the owner's as a source of the reader's, which needs a grant. */
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
   * Waits until the controller has dealt with everything that happened before to SecretGrants, and to the owner's Secrets as
   * far as the reader watches them. A binding of its own gets a grant, follows a rotation, and loses the grant again: each
   * shows only by the stream in question, and a watch shows changes in their order.
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

  /** Waits until the reader's HarborCluster holds that access key, or none. */
  async untilHeld(value: string | undefined, withinMs?: number): Promise<void> {
    await eventually(async () => assert.equal((await this.reader.s3()).accesskey, value), withinMs);
  }
}

/** The owner has the Secret `bucket`; the reader a HarborCluster, and an account that may read all that is the owner's. */
export async function newNeighbours({ rights = true } = {}): Promise<{ both: Neighbours; value: string }> {
  const [owner, reader] = [await createNamespace(), await createNamespace()];
  const both = new Neighbours(owner, reader);
  const value = await both.rotate();
  await reader.harbor();
  if (rights) await reader.grant(mayRead, { role: `${reader.namespace}-reads`, namespace: owner.namespace });
  return { both, value };
}

/** One namespace is both: its bindings read its own Secrets by grants. */
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
