/** Why a composition sees no claim. */
import assert from "node:assert/strict";
import { DEFAULT_LIMITS } from "../../../../src/api/limits.ts";
import { apiVersionOf } from "../../../../src/apimachinery/objects.ts";
import { Claims } from "../../../../src/controllers/composition/claims.ts";
import { apiError } from "../../cache/list-watch.ts";
import { FakeInformers, version } from "../../informers.ts";
import { HARBORS } from "../../resources.ts";

describe("the claims of a composition", () => {
  let watcher: FakeInformers;
  let claims: Claims;

  beforeEach(() => {
    watcher = new FakeInformers();
    for (const name of ["a", "b", "c"]) watcher.objects.set(`namespaces/${name}`, version("1"));
    const installation = { closedNamespace: () => undefined, limits: DEFAULT_LIMITS };
    claims = new Claims({ watcher: () => watcher }, installation, () => {});
    const identity = "system:serviceaccount:inlay-system:inlay-compositions" as const;
    const compiled = {
      kind: HARBORS,
      reach: "Cluster",
      bindings: [],
      notSupported: [],
      reads: [],
      writes: [],
    } as const;
    claims.follow(
      "harbors",
      { apiVersion: apiVersionOf(HARBORS), kind: HARBORS.kind },
      { compiled, resource: HARBORS, identity },
    );
  });

  const refuse = (namespace: string, status = 403) =>
    watcher.refuse(`${namespace}/harborclusters`, apiError(status, status === 403 ? "Forbidden" : "InternalError"));
  const reason = () => claims.refusal("harbors")?.reason;

  it("are not visible if all namespaces refuse, and the reason is no missing permission if one fails otherwise", () => {
    refuse("a");
    refuse("c");
    assert.equal(reason(), undefined);
    refuse("b");
    assert.equal(reason(), "Forbidden");
    assert.match(
      claims.refusal("harbors")?.message ?? "",
      /may not list harborclusters\.goharbor\.io; allow it with: /,
    );
    refuse("b", 500);
    assert.equal(reason(), "Unavailable");
    watcher.sync("b/harborclusters");
    assert.equal(reason(), undefined);
  });
});
