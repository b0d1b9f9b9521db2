/** Splits shipped roles into single permissions, and finds the permission that a request uses. */
import type { AuditedRequest } from "./audit.ts";
import { objectsOf } from "./manifests.ts";

export interface Right {
  verb: string;
  /** Group, plural and subresource, as in the audit log. */
  resource: string;
  /** Undefined for any name. */
  name: string | undefined;
}

interface Role {
  kind: string;
  rules?: { apiGroups: string[]; resources: string[]; verbs: string[]; resourceNames?: string[] }[];
}

/** The permissions that all roles of a manifest grant. */
export function rightsIn(manifest: string): Right[] {
  return objectsOf(manifest).flatMap(({ rules = [] }: Role) => rules.flatMap(rightsOf));
}

export function rightsOf({ apiGroups, resources, verbs, resourceNames }: NonNullable<Role["rules"]>[number]): Right[] {
  return apiGroups.flatMap((group) =>
    resources.flatMap((plural) =>
      verbs.flatMap((verb) =>
        (resourceNames ?? [undefined]).map((name) => ({
          verb,
          resource: [group, plural].filter(Boolean).join("/"),
          name,
        })),
      ),
    ),
  );
}

/** Whether a permission covers a request, whatever its result. Impersonation is a permission of the original user. */
export function isBy({ verb, resource, name }: Right, request: AuditedRequest): boolean {
  if (resource.endsWith("/userextras/inlay.dev/binding")) return request.as !== undefined && request.mark !== undefined;
  if (verb === "impersonate") return request.as?.split(":")[3] === name && resource === "serviceaccounts";
  if (request.as !== undefined || request.verb !== verb || !covers(resource, request.resource)) return false;
  return name === undefined || request.name === name;
}

/** `*` after a group means all resources of the group. */
const covers = (resource: string, asked: string): boolean =>
  resource.endsWith("/*") ? asked.startsWith(resource.slice(0, -1)) : resource === asked;

export const describeRight = ({ verb, resource, name }: Right): string =>
  [verb, resource, name].filter((word) => word !== undefined).join(" ");

/** Whether a request was authorized. A 404 counts as authorized. */
export const isAdmitted = ({ code }: AuditedRequest): boolean => code < 300 || code === 404;
