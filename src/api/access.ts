/** What keeps the account of bindings and its permissions until the bindings are released. */

/** The label by which a ServiceAccount, Role or RoleBinding asks for the finalizer of the same name. */
export const ACCESS = "inlay.dev/access";
export const ACCESS_LABEL_VALUE = "true";
