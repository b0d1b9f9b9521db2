/** Finds the permissions of a composition's account.yaml that its page did not use, by the roles and the audit log. */
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { Api } from "../controller/api.ts";
import { COMPOSITIONS } from "../controller/compositions.ts";
import { objectsIn } from "../controller/manifests.ts";
import { loggedUntilNow } from "../controller/requests.ts";
import { describeRight, isBy, rightsOf } from "../controller/rights.ts";
import { auditLog } from "../controller/shared.ts";
import { root } from "./pages.ts";

/** The accounts called inlay of namespaces with sources. The page creates their permissions in other namespaces. */
const ACCOUNT = /^system:serviceaccount:[^:]+:inlay$/;
/** The admission policy checks this permission of a binding's author, without a request. */
const ASKED = "get secrets";
/** Used only for a Deployment that changes during its restart, and for one with several replicas. */
const SELDOM = ["get apps/deployments", "list policy/poddisruptionbudgets"];

export async function unusedRights(folder: string, mark: number): Promise<string[]> {
  await loggedUntilNow({ api: new Api(controlPlane()), namespace: "default" });
  const made = [...(await auditLog().since(mark)), ...(await auditLog().watchesSince(mark))].filter(
    ({ code }) => code < 300,
  );
  const roles = (await objectsIn(join(root, "compositions", folder, "account.yaml"))).filter(({ rules }) => rules);
  return roles.flatMap(({ metadata, rules }) => {
    const isComposing = metadata.name.startsWith("inlay-compositions");
    const asAccount = made
      .filter(({ as = "" }) => (isComposing ? as === COMPOSITIONS : ACCOUNT.test(as)))
      .map((each) => ({ ...each, as: undefined }));
    const unused = rules
      .flatMap(rightsOf)
      .filter((right: Parameters<typeof isBy>[0]) => !asAccount.some((each) => isBy(right, each)));
    const names = unused.map((right: Parameters<typeof isBy>[0]) => describeRight(right));
    const isNeeded = (each: string) => SELDOM.includes(each) || (isComposing && each.startsWith(ASKED));
    return names.filter((each: string) => !isNeeded(each)).map((each: string) => `${metadata.name}: ${each}`);
  });
}
