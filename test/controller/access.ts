/** Asks the API server whether a user has a permission. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { Api } from "./api.ts";
import { eventually } from "./eventually.ts";

export interface Access {
  verb: string;
  group?: string;
  resource: string;
  subresource?: string;
  /** Undefined for all namespaces, or for cluster-scoped objects. */
  namespace?: string | undefined;
  name?: string;
  fieldSelector?: { requirements: { key: string; operator: "In"; values: string[] }[] };
}

const REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

export async function may(user: string, { namespace = "", ...access }: Access): Promise<boolean> {
  const spec = { user, groups: groupsOf(user), resourceAttributes: { ...access, namespace } };
  return (await new Api(controlPlane()).create(REVIEWS, { spec })).status.allowed;
}

/** Waits until the user has the permission: the authorizer observes a new one a moment later. */
export const untilMay = (user: string, access: Access): Promise<void> =>
  eventually(async () => assert.ok(await may(user, access), `${user} still may not ${describeAccess(access)}`));

/** Waits until the user no longer has the permission. */
export const untilMayNot = (user: string, access: Access): Promise<void> =>
  eventually(async () => assert.ok(!(await may(user, access)), `${user} still may ${describeAccess(access)}`));

export const describeAccess = ({ verb, group, resource, subresource, namespace, name, fieldSelector }: Access) =>
  [
    verb,
    resource + (group === undefined ? "" : `.${group}`) + (subresource === undefined ? "" : `/${subresource}`),
    name ?? fieldSelector?.requirements.map(({ values }) => `with the name ${values}`).join(),
    namespace === undefined ? "anywhere" : `in ${namespace}`,
  ]
    .filter((word) => word !== undefined)
    .join(" ");

/** The groups that the API server adds to a user. */
function groupsOf(user: string): string[] {
  const [, , namespace] = user.startsWith("system:serviceaccount:") ? user.split(":") : [];
  const ofAccounts = namespace ? ["system:serviceaccounts", `system:serviceaccounts:${namespace}`] : [];
  return ["system:authenticated", ...ofAccounts];
}
