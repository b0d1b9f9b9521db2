/** Roles as they are shipped come in; single rights go out, and which request uses which of them. */
import type { AuditedRequest } from "./audit.ts";
import { objectsOf } from "./manifests.ts";

export interface Right {
  verb: string;
  /** As the audit log has it: group, plural and subresource. */
  resource: string;
  /** Undefined for any. */
  name: string | undefined;
}

interface Role {
  kind: string;
  rules?: { apiGroups: string[]; resources: string[]; verbs: string[]; resourceNames?: string[] }[];
}

/** The rights that all roles of a manifest grant. */
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

/** Whether a request is one that a right allows, whatever became of it. Impersonation is the right of whose request it was. */
export function isBy({ verb, resource, name }: Right, request: AuditedRequest): boolean {
  if (verb === "impersonate") return request.as?.split(":")[3] === name && resource === "serviceaccounts";
  if (request.as !== undefined || request.verb !== verb || !covers(resource, request.resource)) return false;
  return name === undefined || request.name === name;
}

/** `*` after a group means all of it. */
const covers = (resource: string, asked: string): boolean =>
  resource.endsWith("/*") ? asked.startsWith(resource.slice(0, -1)) : resource === asked;

export const describeRight = ({ verb, resource, name }: Right): string =>
  [verb, resource, name].filter((word) => word !== undefined).join(" ");

/** Whether a request was let through: that there is no such object is an answer too. */
export const isAdmitted = ({ code }: AuditedRequest): boolean => code < 300 || code === 404;
