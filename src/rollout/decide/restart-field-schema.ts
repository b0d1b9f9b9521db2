/** The fields that a binding restarts workloads by come in; why one is none, or takes no such text, goes out, by the schemas of the kinds. */
import type { RolloutSpec } from "../../api/rollout.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { SecretValue } from "../../apimachinery/secret-value.ts";
import { attempt } from "../../kube/access-error.ts";
import type { Schemas } from "../../kube/schemas.ts";
import { checkAgainstSchema } from "../../transform/schema-check.ts";
import { givenText } from "../../workloads/restart-field.ts";
import type { WorkloadLookup } from "../discover/lookups.ts";

/** Such as is written, for the rules that a field may have for it. */
const EXAMPLES = {
  time: "2026-11-21T10:00:01Z",
  true: "true",
  Time: "2026-11-21T10:00:00.000Z",
  Revision: "1-3fa9c1-09ab34de12",
  ResourceVersion: "1",
};

export async function wrongRestartField(
  schemas: Pick<Schemas, "of">,
  lookups: readonly WorkloadLookup[],
  { stamp }: RolloutSpec,
): Promise<Problem | undefined> {
  const checked = lookups
    .filter(({ paths }) => paths.restart !== undefined)
    .map(async ({ resource, stampAt }) => {
      const schema = await schemas.of(resource);
      const text = EXAMPLES[givenText({ stampAt, isRestartField: true }) ?? stamp.value];
      const field = { path: stampAt, value: new SecretValue(text), fromSecret: false };
      if (schema) checkAgainstSchema({ fields: [field], leftOut: [] }, schema.root, schema.resolve);
    });
  const results = await Promise.all(checked.map((each) => attempt(each)));
  return results.find((each) => each instanceof Problem);
}
