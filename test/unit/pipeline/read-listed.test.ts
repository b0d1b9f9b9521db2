/** A source that is a list: a refused list is no missing source. */
import assert from "node:assert/strict";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { serviceAccountIdentity } from "../../../src/kube/identity.ts";
import { listingFor, readListed } from "../../../src/pipeline/compile.ts";
import type { ListedSource } from "../../../src/sources/source.ts";
import { finish } from "../../../src/workqueue/cpu-scheduler.ts";
import { SECRETS } from "../resources.ts";
import { absent } from "../transform/sources.ts";

describe("a source that is a list", () => {
  const identity = serviceAccountIdentity("registry", "inlay");
  const source = {
    listed: { resource: SECRETS, namespace: "registry" },
    // biome-ignore lint/correctness/useYield: this source looks at no object
    *toLive() {
      return absent();
    },
  } as unknown as ListedSource;
  const read = (seen: object) =>
    finish(
      readListed(source, listingFor(source, { identity }), { list: () => ({ members: [], ...seen }) as never }, "key"),
    );

  it("is refused, and not missing, to an account that may not list it", () => {
    assert.deepEqual(read({ phase: "synced" }), absent());
    const refused = read({ phase: "failed", error: new ApiError("LIST secrets", 403, "Forbidden") });
    assert.equal(refused instanceof Problem && refused.reason, "Forbidden");
  });
});
