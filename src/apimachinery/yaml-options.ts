/** How Inlay prints objects as YAML. Without the YAML library, which commands load only for YAML. */

/** Kubernetes reads YAML 1.1, where unquoted words such as "yes" are booleans. */
export const YAML_OPTIONS = { aliasDuplicateObjects: false, compat: "yaml-1.1", lineWidth: 0 } as const;
