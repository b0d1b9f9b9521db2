/** Permissions that a tenant gives to the account of its bindings. */
import type { Rule } from "../test-namespace.ts";

const READ_VERBS = ["get", "list", "watch"];

export const READ: Rule[] = [
  { apiGroups: [""], resources: ["secrets", "configmaps"], verbs: READ_VERBS },
  { apiGroups: ["apps"], resources: ["deployments", "statefulsets", "daemonsets"], verbs: [...READ_VERBS, "patch"] },
  { apiGroups: ["batch"], resources: ["cronjobs", "jobs"], verbs: [...READ_VERBS, "patch"] },
  { apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs: [...READ_VERBS, "patch"] },
];
