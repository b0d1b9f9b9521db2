/** Generated from apis/bindingcompositions.yaml by `npm run generate`. Do not edit. */
import type { ObjectMeta } from "../apimachinery/objects.ts";
import type { Selector, MatchExpression, Condition } from "./secret-binding.ts";

/** A BindingComposition creates SecretBindings for every object of a kind. Such an object is called a claim. Patches copy fields from the claim to its bindings, and from the bindings back to the claim. */
export interface BindingComposition {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  /** The objects that are claims, and the bindings of each claim. */
  spec: {
    /** The ServiceAccount that Inlay impersonates to read and write claims and to write bindings. Its RBAC permissions decide which kinds and namespaces the composition reaches. */
    serviceAccount: {
      /** The namespace of the ServiceAccount. Defaults to inlay-system. */
      namespace: string;
      /** The name of the ServiceAccount. Defaults to inlay-compositions. */
      name: string;
    };
    /** The objects that are claims, all of one kind. */
    for: {
      /** The group and version, such as v1 or apps/v1. */
      apiVersion: string;
      /** The kind, such as HarborCluster. */
      kind: string;
      /** Selects the objects that match all criteria, including objects that are created later. Defaults to all objects. */
      selector?: {
        /** The name must match one of these patterns; * matches any characters, and ? matches one character. */
        names?: string[];
        /** The name must match none of these patterns; * matches any characters, and ? matches one character. */
        exceptNames?: string[];
        /** The object must have all these labels with these values. */
        matchLabels?: Record<string, string>;
        /** The labels must meet all these requirements. */
        matchExpressions?: MatchExpression[];
        /** The object must have all these annotations with matching values; * matches any characters, and ? matches one character. */
        annotations?: Record<string, string>;
      };
      /** Selects objects in the namespaces that match all criteria, including namespaces that are created later. Not for cluster-scoped kinds. Defaults to all namespaces. */
      namespaceSelector?: Selector;
    };
    /** The namespaces that patches may write into a binding. ClaimNamespace: only the namespace of the claim. Cluster: any namespace, so users who may write a claim choose it. Defaults to ClaimNamespace. */
    reach: "ClaimNamespace" | "Cluster";
    /** The fields and values that a claim may not have. For a claim with one of them, Inlay creates no binding, does not change existing bindings, and reports NotSupported. */
    notSupported?: {
      /** The path of a field in the claim. A field that is missing, empty or false is not reported. */
      fromFieldPath: string;
      /** Reports the field only if this regular expression (RE2) matches anywhere in its text. */
      matches?: string;
      /** Reports the field only if this regular expression (RE2) does not match anywhere in its text. */
      unless?: string;
      /** What to write instead. */
      message: string;
    }[];
    /** Patches that several bindings share. A patch of type PatchSet refers to them. */
    patchSets?: {
      /** The name that patches refer to. */
      name: string;
      /**
       * The patches, in order.
       *
       * Items: A patch. The condition Accepted reports unknown types and fields.
       */
      patches: Record<string, unknown>[];
    }[];
    /**
     * The bindings of each claim.
     *
     * Items: A SecretBinding. Its name is the name of the claim, a dash, and the name of this entry.
     */
    bindings: {
      /** The name of this entry, which is unique within the composition. */
      name: string;
      /** A SecretBinding without values from the claim; patches write these values into it. Its namespace is metadata.namespace, or the namespace of the claim if that is not set. */
      base: Record<string, unknown>;
      /**
       * The patches, in order.
       *
       * Items: A patch. The condition Accepted reports unknown types and fields.
       */
      patches?: Record<string, unknown>[];
    }[];
    /** If true, Inlay creates, changes and deletes no bindings, and writes no claims. Defaults to false. */
    suspend?: boolean;
    /** What happens to the bindings when you delete the composition. Delete: Inlay deletes them. Orphan: they stay. Defaults to Delete. */
    deletionPolicy: "Delete" | "Orphan";
  };
  /** The state of the composition. It never contains a value. */
  status?: {
    /** The text of the annotation inlay.dev/refresh that Inlay handled last, at most 256 characters of it. */
    lastHandledRefresh?: string;
    /** The generation of the spec that this status describes, or -1 before the first status. */
    observedGeneration?: number;
    /** The number of claims. */
    claims?: number;
    /** The number of bindings that the composition created. */
    bindings?: number;
    /** The number of these bindings that are ready. */
    readyBindings?: number;
    /** Up to ten problems that prevent the composition from creating a binding or writing a claim. */
    problems?: {
      /** The claim, as namespace/name. */
      claim: string;
      /** The path in the spec, such as bindings[s3].patches[2]. */
      place?: string;
      /** A word that programs can compare. */
      reason: string;
      /** What is wrong and what to do. */
      message: string;
    }[];
    /** Accepted: whether Inlay can carry out the spec. Ready: whether every visible claim has its bindings and all of them are ready. Reconciling: True while Inlay waits or retries. Stalled: True while only a change of the composition or a claim can help, while a binding is Stalled, and once a problem that a user must fix has lasted for a minute. Neither exists otherwise. */
    conditions?: Condition[];
  };
}
