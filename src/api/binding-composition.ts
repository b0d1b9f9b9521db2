/** Generated from apis/bindingcompositions.yaml by `npm run generate`. Do not edit. */

/** A BindingComposition makes SecretBindings for every object of a kind, which is called a claim. Patches copy fields of the claim into its bindings, and fields of the bindings back to the claim. */
export interface BindingComposition {
  apiVersion: string;
  kind: string;
  metadata: import("../apimachinery/objects.ts").ObjectMeta;
  /** Which objects are claims, and which bindings each of them gets. */
  spec: {
    /** The ServiceAccount as which claims are read, and bindings and claims written. Its RBAC decides which kinds and namespaces the composition reaches. */
    serviceAccount: {
      /** Its namespace. */
      namespace: string;
      /** Its name. */
      name: string;
    };
    /** The claims, objects of one kind. */
    for: {
      /** Group and version, such as v1 or apps/v1. */
      apiVersion: string;
      /** The kind, such as HarborCluster. */
      kind: string;
      /** Only the objects that match all that is given, as they come and go. */
      selector?: {
        /**
         * The name is one of these, in which * stands for any characters and ? for one.
         *
         * @minItems 1
         * @maxItems 16
         */
        names?: string[];
        /**
         * The name is none of these, in which * stands for any characters and ? for one.
         *
         * @minItems 1
         * @maxItems 16
         */
        exceptNames?: string[];
        /** Each of these labels has this value. */
        matchLabels?: {
          [k: string]: string;
        };
        /**
         * Each of these holds.
         *
         * @maxItems 16
         */
        matchExpressions?: {
          /** The label. */
          key: string;
          /** In and NotIn compare the label with values. Exists and DoesNotExist test whether it is there. */
          operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
          /**
           * What In and NotIn compare with.
           *
           * @maxItems 64
           */
          values?: string[];
        }[];
        /** Each of these annotations has this value, in which * stands for any characters and ? for one. */
        annotations?: {
          [k: string]: string;
        };
      };
      /** Only objects in the namespaces that match all that is given, as they come and go. Not for a kind that belongs to the cluster. */
      namespaceSelector?: {
        /**
         * The name is one of these, in which * stands for any characters and ? for one.
         *
         * @minItems 1
         * @maxItems 16
         */
        names?: string[];
        /**
         * The name is none of these, in which * stands for any characters and ? for one.
         *
         * @minItems 1
         * @maxItems 16
         */
        exceptNames?: string[];
        /** Each of these labels has this value. */
        matchLabels?: {
          [k: string]: string;
        };
        /**
         * Each of these holds.
         *
         * @maxItems 16
         */
        matchExpressions?: {
          /** The label. */
          key: string;
          /** In and NotIn compare the label with values. Exists and DoesNotExist test whether it is there. */
          operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
          /**
           * What In and NotIn compare with.
           *
           * @maxItems 64
           */
          values?: string[];
        }[];
      };
    };
    /** Which namespaces patches may write into a binding. ClaimNamespace: that of the claim. Cluster: any, so users who may write a claim choose the namespace. */
    reach: "ClaimNamespace" | "Cluster";
    /**
     * What a claim may not ask for. A claim that does gets no binding, one that is there stays as it was made last, and the claim reports NotSupported.
     *
     * @maxItems 64
     */
    notSupported?: {
      /** A field of the claim. Where it is missing or empty, or false, there is nothing to report. */
      fromFieldPath: string;
      /** Only if this regular expression (RE2) finds something in the text of the field. */
      matches?: string;
      /** Only if this regular expression (RE2) finds nothing in the text of the field. */
      unless?: string;
      /** What to write instead. */
      message: string;
    }[];
    /**
     * Patches that several bindings share. A patch of the type PatchSet uses them.
     *
     * @maxItems 64
     */
    patchSets?: {
      /** The name that patches use. */
      name: string;
      /**
       * The patches, in order.
       *
       * @maxItems 256
       *
       * Items: One patch. An unknown type or field is reported in the condition Accepted.
       */
      patches: {
        /** FromCompositeFieldPath, ToCompositeFieldPath, CombineFromComposite, CombineToComposite or PatchSet; FromCompositeFieldPath unless given. The composite is the claim. */
        type?: string;
        /** The field to read, such as spec.bucket or metadata.labels[team]. */
        fromFieldPath?: string;
        /** The field to write; the same as fromFieldPath unless given. [*] means every element that is there. */
        toFieldPath?: string;
        /** The name of an entry of patchSets, for the type PatchSet. */
        patchSetName?: string;
        /** Several fields that make one value, for the types CombineFromComposite and CombineToComposite. */
        combine?: {
          /** string. */
          strategy?: string;
          /**
           * The fields to read. All of them have to be there.
           *
           * @maxItems 64
           */
          variables?: {
            /** The field to read. */
            fromFieldPath?: string;
          }[];
          /** For the strategy string. */
          string?: {
            /** A format as in Go, with one verb for each variable. */
            fmt?: string;
          };
        };
        /** What to do where a field is missing, or has a value. */
        policy?: {
          /** Optional or Required; Optional unless given. Required makes no binding before the field is there. */
          fromFieldPath?: string;
          /** Keep or Remove; Keep unless given. What becomes of the field of the binding when an optional field of the claim goes missing: Keep leaves the binding as it was made last, Remove takes the field out. */
          onMissing?: string;
          /** Replace, MergeObjects, MergeObjectsAppendArrays, ForceMergeObjects or ForceMergeObjectsAppendArrays; Replace unless given. */
          toFieldPath?: string;
        };
        /**
         * What to do with the value, one step after the other.
         *
         * @maxItems 32
         *
         * Items: One step that changes the value. An unknown type is reported in the condition Accepted.
         */
        transforms?: {
          /** math, map, match, string, convert or forEach. */
          type?: string;
          /** Changes a number. */
          math?: {
            /** Multiply, ClampMin or ClampMax; Multiply unless given. */
            type?: string;
            /** The factor. */
            multiply?: number;
            /** The least that the value can be. */
            clampMin?: number;
            /** The most that the value can be. */
            clampMax?: number;
          };
          /** Replaces a text by the value under the key of that name. */
          map?: Record<string, unknown>;
          /** Replaces a text by the result of the first pattern that matches. */
          match?: {
            /**
             * The patterns, in order.
             *
             * @maxItems 64
             */
            patterns?: {
              /** literal or regexp; literal unless given. */
              type?: string;
              /** Matches this text. */
              literal?: string;
              /** Matches a text in which this regular expression (RE2) finds something. */
              regexp?: string;
              /** The value, any JSON. */
              result?: unknown;
            }[];
            /** Value or Input; what becomes of a text that no pattern matches. Value unless given. */
            fallbackTo?: string;
            /** That value, any JSON; null unless given. */
            fallbackValue?: unknown;
          };
          /** Makes a text of the value. */
          string?: {
            /** Format, Convert, TrimPrefix, TrimSuffix, Regexp, Join, Replace or Split; Format unless given. */
            type?: string;
            /** A format as in Go, such as "%s-primary". */
            fmt?: string;
            /** ToUpper, ToLower, ToJson, ToBase64, FromBase64, ToSha1, ToSha256, ToSha512 or ToAdler32. */
            convert?: string;
            /** The prefix or suffix to remove. */
            trim?: string;
            /** The part of the text that a regular expression matches. */
            regexp?: {
              /** The regular expression (RE2). */
              match?: string;
              /** The number of the group; 0, all that matches, unless given. */
              group?: number;
            };
            /** Joins a list. */
            join?: {
              /** What to put between two elements. */
              separator?: string;
            };
            /** Makes a list of a text. Blanks around each element are removed, and empty elements left out. */
            split?: {
              /** What is between two elements. */
              separator?: string;
            };
            /** Replaces every occurrence of a text. */
            replace?: {
              /** The text to replace, to the letter. */
              search?: string;
              /** The text to put in its place. */
              replace?: string;
            };
          };
          /** Changes the type of the value. */
          convert?: {
            /** string, int, int64, bool, float64, object or array. */
            toType?: string;
            /** none, quantity or json; none unless given. */
            format?: string;
          };
          /** Makes an object of each element of a list. */
          forEach?: {
            /**
             * The fields of each object. One that an element lacks is left out.
             *
             * @maxItems 32
             */
            fields?: {
              /** The field of the element to read. */
              fromFieldPath?: string;
              /** The field of the object to write; the same as fromFieldPath unless given. */
              toFieldPath?: string;
              /**
               * What to do with the value. All but forEach.
               *
               * @maxItems 32
               */
              transforms?: Record<string, unknown>[];
            }[];
          };
        }[];
      }[];
    }[];
    /**
     * The bindings that each claim gets.
     *
     * @minItems 1
     * @maxItems 32
     *
     * Items: One SecretBinding. It is called like the claim, with a dash and this name behind that.
     */
    bindings: {
      /** The name of this binding among those of a claim. */
      name: string;
      /** A SecretBinding, into which the patches write. It is made in the namespace of the claim unless metadata.namespace names another. */
      base: Record<string, unknown>;
      /**
       * The patches, in order.
       *
       * @maxItems 256
       *
       * Items: One patch. An unknown type or field is reported in the condition Accepted.
       */
      patches?: {
        /** FromCompositeFieldPath, ToCompositeFieldPath, CombineFromComposite, CombineToComposite or PatchSet; FromCompositeFieldPath unless given. The composite is the claim. */
        type?: string;
        /** The field to read, such as spec.bucket or metadata.labels[team]. */
        fromFieldPath?: string;
        /** The field to write; the same as fromFieldPath unless given. [*] means every element that is there. */
        toFieldPath?: string;
        /** The name of an entry of patchSets, for the type PatchSet. */
        patchSetName?: string;
        /** Several fields that make one value, for the types CombineFromComposite and CombineToComposite. */
        combine?: {
          /** string. */
          strategy?: string;
          /**
           * The fields to read. All of them have to be there.
           *
           * @maxItems 64
           */
          variables?: {
            /** The field to read. */
            fromFieldPath?: string;
          }[];
          /** For the strategy string. */
          string?: {
            /** A format as in Go, with one verb for each variable. */
            fmt?: string;
          };
        };
        /** What to do where a field is missing, or has a value. */
        policy?: {
          /** Optional or Required; Optional unless given. Required makes no binding before the field is there. */
          fromFieldPath?: string;
          /** Keep or Remove; Keep unless given. What becomes of the field of the binding when an optional field of the claim goes missing: Keep leaves the binding as it was made last, Remove takes the field out. */
          onMissing?: string;
          /** Replace, MergeObjects, MergeObjectsAppendArrays, ForceMergeObjects or ForceMergeObjectsAppendArrays; Replace unless given. */
          toFieldPath?: string;
        };
        /**
         * What to do with the value, one step after the other.
         *
         * @maxItems 32
         *
         * Items: One step that changes the value. An unknown type is reported in the condition Accepted.
         */
        transforms?: {
          /** math, map, match, string, convert or forEach. */
          type?: string;
          /** Changes a number. */
          math?: {
            /** Multiply, ClampMin or ClampMax; Multiply unless given. */
            type?: string;
            /** The factor. */
            multiply?: number;
            /** The least that the value can be. */
            clampMin?: number;
            /** The most that the value can be. */
            clampMax?: number;
          };
          /** Replaces a text by the value under the key of that name. */
          map?: Record<string, unknown>;
          /** Replaces a text by the result of the first pattern that matches. */
          match?: {
            /**
             * The patterns, in order.
             *
             * @maxItems 64
             */
            patterns?: {
              /** literal or regexp; literal unless given. */
              type?: string;
              /** Matches this text. */
              literal?: string;
              /** Matches a text in which this regular expression (RE2) finds something. */
              regexp?: string;
              /** The value, any JSON. */
              result?: unknown;
            }[];
            /** Value or Input; what becomes of a text that no pattern matches. Value unless given. */
            fallbackTo?: string;
            /** That value, any JSON; null unless given. */
            fallbackValue?: unknown;
          };
          /** Makes a text of the value. */
          string?: {
            /** Format, Convert, TrimPrefix, TrimSuffix, Regexp, Join, Replace or Split; Format unless given. */
            type?: string;
            /** A format as in Go, such as "%s-primary". */
            fmt?: string;
            /** ToUpper, ToLower, ToJson, ToBase64, FromBase64, ToSha1, ToSha256, ToSha512 or ToAdler32. */
            convert?: string;
            /** The prefix or suffix to remove. */
            trim?: string;
            /** The part of the text that a regular expression matches. */
            regexp?: {
              /** The regular expression (RE2). */
              match?: string;
              /** The number of the group; 0, all that matches, unless given. */
              group?: number;
            };
            /** Joins a list. */
            join?: {
              /** What to put between two elements. */
              separator?: string;
            };
            /** Makes a list of a text. Blanks around each element are removed, and empty elements left out. */
            split?: {
              /** What is between two elements. */
              separator?: string;
            };
            /** Replaces every occurrence of a text. */
            replace?: {
              /** The text to replace, to the letter. */
              search?: string;
              /** The text to put in its place. */
              replace?: string;
            };
          };
          /** Changes the type of the value. */
          convert?: {
            /** string, int, int64, bool, float64, object or array. */
            toType?: string;
            /** none, quantity or json; none unless given. */
            format?: string;
          };
          /** Makes an object of each element of a list. */
          forEach?: {
            /**
             * The fields of each object. One that an element lacks is left out.
             *
             * @maxItems 32
             */
            fields?: {
              /** The field of the element to read. */
              fromFieldPath?: string;
              /** The field of the object to write; the same as fromFieldPath unless given. */
              toFieldPath?: string;
              /**
               * What to do with the value. All but forEach.
               *
               * @maxItems 32
               */
              transforms?: Record<string, unknown>[];
            }[];
          };
        }[];
      }[];
    }[];
    /** While true, no binding is made, changed or deleted, and no claim is written. */
    suspend?: boolean;
    /** What becomes of the bindings when the composition is deleted. Delete deletes them. Orphan leaves them as they are. */
    deletionPolicy: "Delete" | "Orphan";
  };
  /** What the controller has made. Never a value. */
  status?: {
    /** The generation of spec that this status is about. */
    observedGeneration?: number;
    /** How many objects the composition makes bindings for. */
    claims?: number;
    /** How many bindings it has made. */
    bindings?: number;
    /** How many of these bindings are ready. */
    readyBindings?: number;
    /**
     * Up to ten things that keep the composition from making a binding, or from writing a claim.
     *
     * @maxItems 10
     */
    problems?: {
      /** The claim, as namespace/name. */
      claim: string;
      /** Where in spec, such as bindings[s3].patches[2]. */
      place?: string;
      /** One word that programs can compare. */
      reason: string;
      /** What is wrong, and what to do. */
      message: string;
    }[];
    /**
     * Accepted says whether spec can be carried out. Ready says whether every claim has its bindings and all of them are ready.
     *
     * @maxItems 8
     */
    conditions?: {
      /** Accepted or Ready. */
      type: string;
      /** Whether it holds. */
      status: "True" | "False" | "Unknown";
      /** One word that programs can compare. */
      reason: string;
      /** The same in words, with what to do. */
      message: string;
      /** When the status changed last. */
      lastTransitionTime: string;
      /** The generation of spec that it is about. */
      observedGeneration?: number;
    }[];
  };
}
