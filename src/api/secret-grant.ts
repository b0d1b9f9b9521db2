/** Generated from apis/secretgrants.yaml by `npm run generate`. Do not edit. */
import type { ObjectMeta, OneOf } from "../apimachinery/objects.ts";
import type { Selector } from "./secret-binding.ts";

/** A SecretGrant permits SecretBindings of other namespaces to read Secrets and ConfigMaps of its own namespace, and to use its VaultConnections. It also permits bindings of its own namespace whose source sets granted. To read an object, the account of the binding needs the RBAC permission too. */
export interface SecretGrant {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  /** The bindings that may read, and the objects that they may read. Each entry of from may read each entry of to. */
  spec: {
    /**
     * The bindings that may read. A binding must match at least one entry.
     *
     * Items: The bindings of one namespace, of all matching namespaces, or of a BindingComposition. Set exactly one of namespace, namespaceSelector and composition.
     */
    from: ({
      /** The metadata.uid of the namespace. A namespace that is created later with the same name has another uid, and this entry does not match it. If unset, only the name counts. */
      namespaceUID?: string;
      /** The name of the service account of the bindings. Defaults to any account. */
      serviceAccountName?: string;
    } & OneOf<{
      /** The namespace of the bindings. */
      namespace: string;
      /** Selects the namespaces that match all criteria at the time of each read. Users who may set the names or labels of namespaces can get access. A selector never matches the namespace of the grant. */
      namespaceSelector: Selector;
      /** The name of a BindingComposition. Its current bindings may read, in any namespace. Inlay computes them from the claims; a binding that only has the label of the composition does not match. */
      composition: string;
    }>)[];
    /**
     * The objects in this namespace that the bindings may read. To create or change a grant, you must be allowed to get all of them yourself, or to use them for VaultConnections.
     *
     * Items: One object, or all matching objects. Set exactly one of name and selector.
     */
    to: ({
      /** Secret, ConfigMap or VaultConnection. Bindings may use a VaultConnection, not read it. */
      kind: "Secret" | "ConfigMap" | "VaultConnection";
    } & OneOf<{
      /** The name of the object. */
      name: string;
      /** Selects the objects that match all criteria at the time of each read. Users who may set the names or labels of objects can grant access to them. */
      selector: Selector;
    }>)[];
  };
}
