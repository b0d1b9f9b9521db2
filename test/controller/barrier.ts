/**
 * Waits, without fixed times, until the controller has processed everything that happened in a team's namespace before. A test
 * uses it to show that the controller does not do something.
 */
import assert from "node:assert/strict";
import type { AnyObject } from "./api.ts";
import type { AuditedRequest } from "./audit.ts";
import type { ControllerProcess } from "./controller.ts";
import { eventually } from "./eventually.ts";
import { harborCluster } from "./harbor.ts";
import { apiVersionOf, type Kind } from "./kinds.ts";
import { secretText } from "./leak-detector.ts";
import { loggedUntilNow } from "./requests.ts";
import type { TestNamespace } from "./test-namespace.ts";

/** A kind of objects that bindings write, and a text field of it. */
export interface Through {
  apiVersion: string;
  kind: string;
  plural: string;
  object: (name: string) => object;
  field: string;
}

export const HARBORS: Through = {
  apiVersion: "goharbor.io/v1beta1",
  kind: "HarborCluster",
  plural: "harborclusters",
  object: harborCluster,
  field: "spec.storage.spec.s3.accesskey",
};

/** A kind of a test, whose objects need no other field than a name. */
export const through = (kind: Kind, field: string): Through => ({
  apiVersion: apiVersionOf(kind),
  kind: kind.kind,
  plural: kind.plural,
  object: (name) => ({ apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { name }, spec: {} }),
  field,
});

/** The name of all objects of the barrier. */
const PULSE = "pulse";
const TEXT = "here";

/** Whether a request is for an object of a barrier. */
export const isOfBarrier = ({ name }: Pick<AuditedRequest, "name">) => name.startsWith(PULSE);

/** Two more bindings in the namespace: one of a Secret, and one that selects objects. */
export class Barrier {
  readonly #team: TestNamespace;
  readonly #through: Through;
  #beats = 0;

  constructor(team: TestNamespace, kind: Through) {
    this.#team = team;
    this.#through = kind;
  }

  /** Creates the objects if they do not exist, and waits until they are in sync. */
  async prepare(): Promise<void> {
    if (this.#beats === 0) await this.#make();
    await this.#beat();
  }

  async pass(controller: ControllerProcess): Promise<void> {
    await this.#beat();
    await controller.idle();
    await loggedUntilNow(this.#team);
  }

  get #one(): string {
    return `${PULSE}-${this.#through.plural}`;
  }
  get #all(): string {
    return `${PULSE}-all-${this.#through.plural}`;
  }

  async #make(): Promise<void> {
    const { apiVersion, kind, field } = this.#through;
    const sources = [{ secret: { name: PULSE } }];
    await this.#team.secret(PULSE, { value: secretText(PULSE) });
    await this.#create(PULSE);
    const fields = [{ path: field, from: { source: PULSE, key: "value" } }];
    await this.#team.bind(this.#one, { sources, targets: [{ apiVersion, kind, name: PULSE, fields }] });
    const selector = { names: [`${PULSE}-*`] };
    const targets = [{ apiVersion, kind, selector, fields: [{ path: field, template: TEXT }] }];
    await this.#team.bind(this.#all, { sources, targets });
  }

  /**
   * Makes one change in each watch, and waits for the effect that only this watch can cause: the new value of a Secret, the field
   * of a selected object, and the generation of a binding. A watch delivers changes in order, so the controller has observed all
   * earlier changes.
   */
  async #beat(): Promise<void> {
    const value = secretText(PULSE);
    const selected = `${PULSE}-${++this.#beats}`;
    await this.#team.secret(PULSE, { value });
    await this.#create(selected);
    await this.#team.rebind(this.#all, { defaults: { onConflict: this.#beats % 2 === 0 ? "Fail" : "Force" } });
    await eventually(async () => assert.equal(await this.#fieldOf(PULSE), value));
    await eventually(async () => assert.equal(await this.#fieldOf(selected), TEXT));
    for (const name of [this.#one, this.#all]) await this.#team.until(name, "Synced");
  }

  get #path(): string {
    return this.#team.path(this.#through.apiVersion, this.#through.plural);
  }

  #create(name: string): Promise<AnyObject> {
    return this.#team.api.create(this.#path, this.#through.object(name));
  }

  async #fieldOf(name: string): Promise<unknown> {
    const object = await this.#team.api.get(`${this.#path}/${name}`);
    return this.#through.field.split(".").reduce((value, key) => value?.[key], object);
  }
}
