/** The rules of Inlay's CRDs: the evaluation in `inlay validate` gives the answers of the API server, for valid and invalid objects. */
import assert from "node:assert/strict";
import ownRules from "../../src/api/own-rules.json" with { type: "json" };
import type { RuleTree } from "../../src/apimachinery/cel.ts";
import { brokenRulesOf, checkOwn } from "../../src/render/own-kinds.ts";
import type { AnyObject } from "../controller/api.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { BROKEN, VALID } from "./rules.ts";

const says = (error: Error) => [error.message];
const asJson = (object: AnyObject): AnyObject => JSON.parse(JSON.stringify(object));

/** All messages of rules in the CRDs. */
function* messagesIn({ rules = [], properties = {}, items, additionalProperties }: RuleTree): Generator<string> {
  for (const { message } of rules) yield message;
  for (const each of [...Object.values(properties), items, additionalProperties]) if (each) yield* messagesIn(each);
}

const plurals: Record<string, string> = {
  SecretBinding: "secretbindings",
  SecretGrant: "secretgrants",
  VaultConnection: "vaultconnections",
  BindingComposition: "bindingcompositions",
};

describe("the rules of the CRDs", () => {
  let team: TestNamespace;
  before(async () => {
    team = await createNamespace({ account: false, rules: [], controller: false });
  });

  const dryRun = (object: AnyObject): Promise<AnyObject> => {
    const plural = plurals[object["kind"]] as string;
    const path =
      plural === "bindingcompositions" ? `/apis/inlay.dev/v1alpha1/${plural}` : team.path("inlay.dev/v1alpha1", plural);
    return team.api.dryRun.create(`${path}?fieldValidation=Strict`, object);
  };
  const wrongIn = (object: AnyObject) => checkOwn(object as never, object["metadata"].name).wrong;

  it("are met by valid objects, here and there", async () => {
    const wrong: string[] = [];
    for (const object of VALID.map(asJson)) {
      const refused = await dryRun(object).then(() => [], says);
      wrong.push(...[...wrongIn(object), ...refused].map((each) => `${each}: ${JSON.stringify(object)}`));
    }
    assert.deepEqual(wrong, []);
  });

  it("are broken by each example of a mistake, with the same message here and there", async () => {
    const wrong: string[] = [];
    for (const { object, message } of BROKEN) {
      const refused = await dryRun(asJson(object)).then(() => ["accepted"], says);
      if (!refused.some((each) => each.includes(message)))
        wrong.push(`the API server says ${refused}, not: ${message}`);
      const found = brokenRulesOf(object["kind"], asJson(object) as never);
      if (!found.some(({ what }) => what.includes(message)))
        wrong.push(`found ${found.map(({ what }) => what).join(" | ")}, not: ${message}`);
    }
    assert.deepEqual(wrong, []);
  });

  it("all have an example", () => {
    const shown = new Set(BROKEN.map(({ message }) => message));
    const all = new Set(Object.values(ownRules as Record<string, RuleTree>).flatMap((tree) => [...messagesIn(tree)]));
    assert.deepEqual(
      [...all].filter((message) => !shown.has(message)),
      [],
    );
  });
});
