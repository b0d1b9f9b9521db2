/** Generated from apis/secretbindings.yaml by `npm run generate`. Do not edit. */

/** A SecretBinding copies values out of Secrets, ConfigMaps and fields of other objects into fields of any object, keeps them there, and undoes them. */
export interface StoredBinding {
  apiVersion: string;
  kind: string;
  metadata: import("../apimachinery/objects.ts").ObjectMeta;
  /** What to read, and what to write where. */
  spec: {
    /** The ServiceAccount of this namespace as which every source is read and every target is written. Its own RBAC decides what this binding may do. An account of another name than inlay must be opened to Inlay by a RoleBinding in this namespace. */
    serviceAccountName: string;
    /** While true, nothing is written and nothing is released, unless the binding is deleted. Afterwards everything is caught up with. */
    suspend?: boolean;
    /**
     * What the author knows and means. ReadableCopies: values of Secrets are written where more people can read them than those who may read the Secret: into objects that are no Secrets, or into other namespaces. Unless it is said here, an event and the condition say so; an installation may refuse to write them before.
     *
     * @maxItems 8
     */
    acknowledge?: "ReadableCopies"[];
    /** The key of an annotation that all sources must carry with the same value; until they do, nothing is written. For values that belong together and stand in several objects, which can't be read at one moment. */
    requireSame?: string;
    /** What holds for every source and target that does not say otherwise. */
    defaults: {
      /** What becomes of the fields that need a source, or a key of it, that is not there. Wait leaves what was written; Remove takes it out again. */
      onMissing: "Wait" | "Remove";
      /** What to do when another field manager owns a field that is to be written for the first time. Fail reports the manager and writes nothing; Force takes the field over. */
      onConflict: "Fail" | "Force";
      /** What becomes of a written field when the binding, the target or the field is removed from here, and of an object that a target with create made. Retain leaves it and gives up its ownership; Remove takes the value out again, and deletes the object. Unless given, Remove for targets with create and Retain for all others. */
      onRelease?: "Retain" | "Remove";
      /** Continuous keeps the fields of a target as the sources say. Once writes each of them once to each object, and then leaves it alone, whatever becomes of the sources or the field. */
      mode: "Continuous" | "Once";
    };
    /**
     * Where values are read, by name.
     *
     * @minItems 1
     * @maxItems 16
     *
     * Items: One thing to read. Exactly one of secret, configMap, object, vault and providerClass.
     */
    sources: (
      | {
          /** The name by which fields and templates call this source; that of the object unless given. A source from Vault needs one. */
          name?: string;
          /** Overrides spec.defaults.onMissing for this source. */
          onMissing?: "Wait" | "Remove";
          /** The binding is as it should be without this source, or a key of it. Fields that need what is missing are left out, and the other fields of their target are written. */
          optional?: boolean;
          /** Keeps the Secret or ConfigMap from being changed and deleted by anyone but the writers, the account of this binding, and cluster admins; and this binding from being deleted or weakened by anyone but the writers and cluster admins. The binding carries the label inlay.dev/protects=true. */
          protect?: {
            /**
             * Who may change and delete it, beside the account of this binding and cluster admins.
             *
             * @maxItems 16
             *
             * Items: A subject, as in a RoleBinding.
             */
            writers: {
              /** What it is. */
              kind: "User" | "Group" | "ServiceAccount";
              /** Its name, as the API server knows it. */
              name: string;
              /** The ServiceAccount's namespace; that of this binding unless given. */
              namespace?: string;
            }[];
          };
          /** A Secret, of this namespace unless another is given. */
          secret: {
            /** Its name. */
            name: string;
            /** Another namespace that it is in. A SecretGrant there has to let this binding read it, and the account needs its own right to. */
            namespace?: string;
            /** If true, Inlay reads it only with a SecretGrant in its namespace, also if that is the namespace of this binding. The grant replaces the permission of the binding's author to get it; the account needs its own right to. A source of another namespace needs a SecretGrant in any case. */
            granted?: boolean;
          };
          configMap?: never;
          vault?: never;
          object?: never;
          providerClass?: never;
        }
      | {
          /** The name by which fields and templates call this source; that of the object unless given. A source from Vault needs one. */
          name?: string;
          /** Overrides spec.defaults.onMissing for this source. */
          onMissing?: "Wait" | "Remove";
          /** The binding is as it should be without this source, or a key of it. Fields that need what is missing are left out, and the other fields of their target are written. */
          optional?: boolean;
          /** Keeps the Secret or ConfigMap from being changed and deleted by anyone but the writers, the account of this binding, and cluster admins; and this binding from being deleted or weakened by anyone but the writers and cluster admins. The binding carries the label inlay.dev/protects=true. */
          protect?: {
            /**
             * Who may change and delete it, beside the account of this binding and cluster admins.
             *
             * @maxItems 16
             *
             * Items: A subject, as in a RoleBinding.
             */
            writers: {
              /** What it is. */
              kind: "User" | "Group" | "ServiceAccount";
              /** Its name, as the API server knows it. */
              name: string;
              /** The ServiceAccount's namespace; that of this binding unless given. */
              namespace?: string;
            }[];
          };
          secret?: never;
          /** A ConfigMap, of this namespace unless another is given. */
          configMap: {
            /** Its name. */
            name: string;
            /** Another namespace that it is in. A SecretGrant there has to let this binding read it, and the account needs its own right to. */
            namespace?: string;
            /** If true, Inlay reads it only with a SecretGrant in its namespace, also if that is the namespace of this binding. The grant replaces the permission of the binding's author to get it; the account needs its own right to. A source of another namespace needs a SecretGrant in any case. */
            granted?: boolean;
          };
          vault?: never;
          object?: never;
          providerClass?: never;
        }
      | {
          /** The name by which fields and templates call this source; that of the object unless given. A source from Vault needs one. */
          name?: string;
          /** Overrides spec.defaults.onMissing for this source. */
          onMissing?: "Wait" | "Remove";
          /** The binding is as it should be without this source, or a key of it. Fields that need what is missing are left out, and the other fields of their target are written. */
          optional?: boolean;
          /** Keeps the Secret or ConfigMap from being changed and deleted by anyone but the writers, the account of this binding, and cluster admins; and this binding from being deleted or weakened by anyone but the writers and cluster admins. The binding carries the label inlay.dev/protects=true. */
          protect?: {
            /**
             * Who may change and delete it, beside the account of this binding and cluster admins.
             *
             * @maxItems 16
             *
             * Items: A subject, as in a RoleBinding.
             */
            writers: {
              /** What it is. */
              kind: "User" | "Group" | "ServiceAccount";
              /** Its name, as the API server knows it. */
              name: string;
              /** The ServiceAccount's namespace; that of this binding unless given. */
              namespace?: string;
            }[];
          };
          secret?: never;
          configMap?: never;
          vault?: never;
          /** Any other object of this namespace, or of the cluster. Never a Secret or ConfigMap. */
          object: {
            /** Group and version, such as v1 or apps/v1. */
            apiVersion: string;
            /** The plural that kubectl api-resources lists, such as services. */
            resource: string;
            /** Its name. */
            name: string;
            /** Whether the object stands in this namespace or belongs to the cluster. */
            scope: "Namespaced" | "Cluster";
          };
          providerClass?: never;
        }
      | {
          /** The name by which fields and templates call this source; that of the object unless given. A source from Vault needs one. */
          name?: string;
          /** Overrides spec.defaults.onMissing for this source. */
          onMissing?: "Wait" | "Remove";
          /** The binding is as it should be without this source, or a key of it. Fields that need what is missing are left out, and the other fields of their target are written. */
          optional?: boolean;
          /** Keeps the Secret or ConfigMap from being changed and deleted by anyone but the writers, the account of this binding, and cluster admins; and this binding from being deleted or weakened by anyone but the writers and cluster admins. The binding carries the label inlay.dev/protects=true. */
          protect?: {
            /**
             * Who may change and delete it, beside the account of this binding and cluster admins.
             *
             * @maxItems 16
             *
             * Items: A subject, as in a RoleBinding.
             */
            writers: {
              /** What it is. */
              kind: "User" | "Group" | "ServiceAccount";
              /** Its name, as the API server knows it. */
              name: string;
              /** The ServiceAccount's namespace; that of this binding unless given. */
              namespace?: string;
            }[];
          };
          secret?: never;
          configMap?: never;
          /** What a Vault or OpenBao server has, read again and again through a VaultConnection. Exactly one of data, metadata and health. Keys are used like those of a Secret; a value that is not text is its JSON. */
          vault:
            | {
                /** The VaultConnection, of this namespace unless another is given. */
                connection: {
                  /** Its name. */
                  name: string;
                  /** Another namespace that it is in. A SecretGrant there has to let this binding use it. */
                  namespace?: string;
                  /** If true, Inlay uses it only with a SecretGrant in its namespace, also if that is the namespace of this binding. The grant replaces the permission of the binding's author to use it. A connection of another namespace needs a SecretGrant in any case. */
                  granted?: boolean;
                };
                /** How often Inlay asks the server, from 1s to 24h. A new text in the annotation inlay.dev/refresh, on the binding or on the connection, has Inlay ask at once. */
                refresh: string;
                /** The data of a path in a KV secrets engine. */
                data: {
                  /** Where the secrets engine is mounted, such as kv. */
                  mount: string;
                  /** The path below the mount, as the command vault kv get has it. It names one place, without wildcards. */
                  path: string;
                  /** The version to read. The current one unless given. */
                  version?: number;
                  /** The version of the secrets engine. */
                  kv: 1 | 2;
                };
                metadata?: never;
                health?: never;
              }
            | {
                /** The VaultConnection, of this namespace unless another is given. */
                connection: {
                  /** Its name. */
                  name: string;
                  /** Another namespace that it is in. A SecretGrant there has to let this binding use it. */
                  namespace?: string;
                  /** If true, Inlay uses it only with a SecretGrant in its namespace, also if that is the namespace of this binding. The grant replaces the permission of the binding's author to use it. A connection of another namespace needs a SecretGrant in any case. */
                  granted?: boolean;
                };
                /** How often Inlay asks the server, from 1s to 24h. A new text in the annotation inlay.dev/refresh, on the binding or on the connection, has Inlay ask at once. */
                refresh: string;
                data?: never;
                /** The metadata of a path in a KV secrets engine of version 2, without its data. Its keys are updated_time, created_time, current_version and custom_metadata. */
                metadata: {
                  /** Where the secrets engine is mounted, such as kv. */
                  mount: string;
                  /** The path below the mount, as the command vault kv get has it. It names one place, without wildcards. */
                  path: string;
                };
                health?: never;
              }
            | {
                /** The VaultConnection, of this namespace unless another is given. */
                connection: {
                  /** Its name. */
                  name: string;
                  /** Another namespace that it is in. A SecretGrant there has to let this binding use it. */
                  namespace?: string;
                  /** If true, Inlay uses it only with a SecretGrant in its namespace, also if that is the namespace of this binding. The grant replaces the permission of the binding's author to use it. A connection of another namespace needs a SecretGrant in any case. */
                  granted?: boolean;
                };
                /** How often Inlay asks the server, from 1s to 24h. A new text in the annotation inlay.dev/refresh, on the binding or on the connection, has Inlay ask at once. */
                refresh: string;
                data?: never;
                metadata?: never;
                /** How a server is, read without a login. Its keys are initialized, sealed, standby, performance_standby, active and version. A server that is shut down is sealed and neither active nor initialized. */
                health: {
                  /** The URL of one server, without a path. The address of the connection unless given. The configuration of Inlay has to list it. */
                  address?: string;
                };
              };
          object?: never;
          providerClass?: never;
        }
      | {
          /** The name by which fields and templates call this source; that of the object unless given. A source from Vault needs one. */
          name?: string;
          /** Overrides spec.defaults.onMissing for this source. */
          onMissing?: "Wait" | "Remove";
          /** The binding is as it should be without this source, or a key of it. Fields that need what is missing are left out, and the other fields of their target are written. */
          optional?: boolean;
          /** Keeps the Secret or ConfigMap from being changed and deleted by anyone but the writers, the account of this binding, and cluster admins; and this binding from being deleted or weakened by anyone but the writers and cluster admins. The binding carries the label inlay.dev/protects=true. */
          protect?: {
            /**
             * Who may change and delete it, beside the account of this binding and cluster admins.
             *
             * @maxItems 16
             *
             * Items: A subject, as in a RoleBinding.
             */
            writers: {
              /** What it is. */
              kind: "User" | "Group" | "ServiceAccount";
              /** Its name, as the API server knows it. */
              name: string;
              /** The ServiceAccount's namespace; that of this binding unless given. */
              namespace?: string;
            }[];
          };
          secret?: never;
          configMap?: never;
          vault?: never;
          object?: never;
          /** A SecretProviderClass of this namespace, by what the Secrets Store CSI driver reports of the pods that mount it (SecretProviderClassPodStatus). Its keys are the ids of objects, and their values are versions, never the objects themselves. While pods have different versions of an object, the value has each in a line of its own. The account needs list and watch on secretproviderclasspodstatuses. */
          providerClass: {
            /** Its name. */
            name: string;
          };
        }
    )[];
    /**
     * The objects to write into. They must exist, unless create says how to make them. A binding with a rollout may have none.
     *
     * @maxItems 64
     *
     * Items: One object, or all that selectors match. An object that several entries match belongs to the one that names it, else to the first of them; the others leave it alone.
     */
    targets: (
      | {
          /** Group and version, such as goharbor.io/v1beta1. */
          apiVersion: string;
          /** The kind, such as HarborCluster. */
          kind: string;
          /** The object's name. Exactly one of name and selector. */
          name: string;
          selector?: never;
          /** The target's namespace, the binding's own unless given. Not for cluster-scoped kinds. */
          namespace?: string;
          /** The namespaces that match all that is given, as they come and go: name is an object in each of them, selector matches objects in any of them. Unless names lists all of them, without * and ? and without labels, the account needs list and watch on namespaces. */
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
              /** The label that is asked about. */
              key: string;
              /** How it is to be. In and NotIn compare it with values; Exists and DoesNotExist ask whether it is there. */
              operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
              /**
               * What In and NotIn compare with.
               *
               * @maxItems 64
               */
              values?: string[];
            }[];
          };
          /** When a value is written. BeforeRollout, which is the default, writes it at once: the rollout begins when it is there. AfterRollout writes it when every workload has rolled out for it; a value that changes meanwhile waits for its own rollout. */
          when?: "BeforeRollout" | "AfterRollout";
          /** Overrides spec.defaults.mode for this target. */
          mode?: "Continuous" | "Once";
          /** Overrides spec.defaults.onConflict for this target. */
          onConflict?: "Fail" | "Force";
          /** Overrides spec.defaults.onRelease for this target. */
          onRelease?: "Retain" | "Remove";
          /** Makes the object once every value is there, and keeps it as it is said here. An object of that name that this binding did not make is never touched, unless adopt says otherwise. */
          create?: {
            /** What to do with an object of that name that this binding did not make. Equal takes it over if all that the binding would write is there already; Any takes it over and overwrites what differs. From then on, it is as one that the binding made, and deleted with it unless onRelease is Retain. Unless given, the object is not touched. */
            adopt?: "Equal" | "Any";
            /** The object without apiVersion, kind, name, namespace and status; of metadata only labels and annotations. The values of fields are put into it. */
            manifest: {
              /** Not here, but in the target. */
              apiVersion?: string;
              /** Not here, but in the target. */
              kind?: string;
              /** Not here; the controller of the object writes it. */
              status?: Record<string, unknown>;
              /** Labels and annotations of the object, and nothing else. */
              metadata?: {
                /** Not here, but in the target. */
                name?: string;
                /** Not here, but in the target. */
                namespace?: string;
                /** What the object is labelled with. */
                labels?: {
                  [k: string]: string;
                };
                /** What the object is annotated with. */
                annotations?: {
                  [k: string]: string;
                };
              };
            };
          };
          /**
           * What to write, all of it in one request. Without create there is at least one.
           *
           * @maxItems 64
           *
           * Items: One field. Exactly one of from and template.
           */
          fields: (
            | {
                /** The field's path from the object's root, such as spec.storage.spec.s3.accesskey. A key with dots or slashes is quoted, as in metadata.annotations["example.com/key"]. An element of a list is named by its fields, as in spec.triggers[name=web].metadata.token, or by its place, as in spec.hosts[0].host. */
                path: string;
                /** One value as it is. key for a Secret or ConfigMap, with pointer for a place in what it holds; fieldPath for an object. Neither for all data of a Secret or ConfigMap, as an object of its keys; include and exclude choose among these. */
                from: {
                  /** The name of one of spec.sources. */
                  source: string;
                  /** A key of the Secret or ConfigMap. */
                  key?: string;
                  /** A JSON pointer (RFC 6901) into what the key holds as JSON or YAML, such as /spec/secretS3/endpoint. */
                  pointer?: string;
                  /** The path of a field of the object, from its root, such as spec.clusterIP. It may name elements of lists, as a target's path does. */
                  fieldPath?: string;
                  /**
                   * Regular expressions in the syntax of RE2. Of all keys, only those are copied that one of these matches anywhere in the key.
                   *
                   * @minItems 1
                   * @maxItems 16
                   */
                  include?: string[];
                  /**
                   * Regular expressions in the syntax of RE2. A key that one of these matches anywhere is not copied, whatever include says.
                   *
                   * @minItems 1
                   * @maxItems 16
                   */
                  exclude?: string[];
                };
                template?: never;
                /** What to do when the path names an element of a list that is not there: Wait for it, which is the default, or Append one with the fields that name it and the values of this binding. */
                onMissingElement?: "Wait" | "Append";
                /** The type of the value. Where it is silent, keys and templates become what the target's schema has at the path: text, an integer, a number, a boolean, or bytes; fields of objects, what a pointer finds, and a template that is one expression alone keep the type that they have. bytes are written in base64; json and yaml are parsed. */
                as?: "string" | "integer" | "number" | "boolean" | "bytes" | "json" | "yaml";
              }
            | {
                /** The field's path from the object's root, such as spec.storage.spec.s3.accesskey. A key with dots or slashes is quoted, as in metadata.annotations["example.com/key"]. An element of a list is named by its fields, as in spec.triggers[name=web].metadata.token, or by its place, as in spec.hosts[0].host. */
                path: string;
                from?: never;
                /** Text with values in it, in Handlebars' syntax, such as https://{{bucket.host}}. A key with dots is written as {{bucket.[tls.crt]}}. */
                template: string;
                /** What to do when the path names an element of a list that is not there: Wait for it, which is the default, or Append one with the fields that name it and the values of this binding. */
                onMissingElement?: "Wait" | "Append";
                /** The type of the value. Where it is silent, keys and templates become what the target's schema has at the path: text, an integer, a number, a boolean, or bytes; fields of objects, what a pointer finds, and a template that is one expression alone keep the type that they have. bytes are written in base64; json and yaml are parsed. */
                as?: "string" | "integer" | "number" | "boolean" | "bytes" | "json" | "yaml";
              }
          )[];
        }
      | {
          /** Group and version, such as goharbor.io/v1beta1. */
          apiVersion: string;
          /** The kind, such as HarborCluster. */
          kind: string;
          name?: never;
          /** The objects of the kind that match all that is given, as they come and go. Those that match no more are released. The account needs list and watch on the kind. */
          selector: {
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
              /** The label that is asked about. */
              key: string;
              /** How it is to be. In and NotIn compare it with values; Exists and DoesNotExist ask whether it is there. */
              operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
              /**
               * What In and NotIn compare with.
               *
               * @maxItems 64
               */
              values?: string[];
            }[];
          };
          /** The target's namespace, the binding's own unless given. Not for cluster-scoped kinds. */
          namespace?: string;
          /** The namespaces that match all that is given, as they come and go: name is an object in each of them, selector matches objects in any of them. Unless names lists all of them, without * and ? and without labels, the account needs list and watch on namespaces. */
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
              /** The label that is asked about. */
              key: string;
              /** How it is to be. In and NotIn compare it with values; Exists and DoesNotExist ask whether it is there. */
              operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
              /**
               * What In and NotIn compare with.
               *
               * @maxItems 64
               */
              values?: string[];
            }[];
          };
          /** When a value is written. BeforeRollout, which is the default, writes it at once: the rollout begins when it is there. AfterRollout writes it when every workload has rolled out for it; a value that changes meanwhile waits for its own rollout. */
          when?: "BeforeRollout" | "AfterRollout";
          /** Overrides spec.defaults.mode for this target. */
          mode?: "Continuous" | "Once";
          /** Overrides spec.defaults.onConflict for this target. */
          onConflict?: "Fail" | "Force";
          /** Overrides spec.defaults.onRelease for this target. */
          onRelease?: "Retain" | "Remove";
          /** Makes the object once every value is there, and keeps it as it is said here. An object of that name that this binding did not make is never touched, unless adopt says otherwise. */
          create?: {
            /** What to do with an object of that name that this binding did not make. Equal takes it over if all that the binding would write is there already; Any takes it over and overwrites what differs. From then on, it is as one that the binding made, and deleted with it unless onRelease is Retain. Unless given, the object is not touched. */
            adopt?: "Equal" | "Any";
            /** The object without apiVersion, kind, name, namespace and status; of metadata only labels and annotations. The values of fields are put into it. */
            manifest: {
              /** Not here, but in the target. */
              apiVersion?: string;
              /** Not here, but in the target. */
              kind?: string;
              /** Not here; the controller of the object writes it. */
              status?: Record<string, unknown>;
              /** Labels and annotations of the object, and nothing else. */
              metadata?: {
                /** Not here, but in the target. */
                name?: string;
                /** Not here, but in the target. */
                namespace?: string;
                /** What the object is labelled with. */
                labels?: {
                  [k: string]: string;
                };
                /** What the object is annotated with. */
                annotations?: {
                  [k: string]: string;
                };
              };
            };
          };
          /**
           * What to write, all of it in one request. Without create there is at least one.
           *
           * @maxItems 64
           *
           * Items: One field. Exactly one of from and template.
           */
          fields: (
            | {
                /** The field's path from the object's root, such as spec.storage.spec.s3.accesskey. A key with dots or slashes is quoted, as in metadata.annotations["example.com/key"]. An element of a list is named by its fields, as in spec.triggers[name=web].metadata.token, or by its place, as in spec.hosts[0].host. */
                path: string;
                /** One value as it is. key for a Secret or ConfigMap, with pointer for a place in what it holds; fieldPath for an object. Neither for all data of a Secret or ConfigMap, as an object of its keys; include and exclude choose among these. */
                from: {
                  /** The name of one of spec.sources. */
                  source: string;
                  /** A key of the Secret or ConfigMap. */
                  key?: string;
                  /** A JSON pointer (RFC 6901) into what the key holds as JSON or YAML, such as /spec/secretS3/endpoint. */
                  pointer?: string;
                  /** The path of a field of the object, from its root, such as spec.clusterIP. It may name elements of lists, as a target's path does. */
                  fieldPath?: string;
                  /**
                   * Regular expressions in the syntax of RE2. Of all keys, only those are copied that one of these matches anywhere in the key.
                   *
                   * @minItems 1
                   * @maxItems 16
                   */
                  include?: string[];
                  /**
                   * Regular expressions in the syntax of RE2. A key that one of these matches anywhere is not copied, whatever include says.
                   *
                   * @minItems 1
                   * @maxItems 16
                   */
                  exclude?: string[];
                };
                template?: never;
                /** What to do when the path names an element of a list that is not there: Wait for it, which is the default, or Append one with the fields that name it and the values of this binding. */
                onMissingElement?: "Wait" | "Append";
                /** The type of the value. Where it is silent, keys and templates become what the target's schema has at the path: text, an integer, a number, a boolean, or bytes; fields of objects, what a pointer finds, and a template that is one expression alone keep the type that they have. bytes are written in base64; json and yaml are parsed. */
                as?: "string" | "integer" | "number" | "boolean" | "bytes" | "json" | "yaml";
              }
            | {
                /** The field's path from the object's root, such as spec.storage.spec.s3.accesskey. A key with dots or slashes is quoted, as in metadata.annotations["example.com/key"]. An element of a list is named by its fields, as in spec.triggers[name=web].metadata.token, or by its place, as in spec.hosts[0].host. */
                path: string;
                from?: never;
                /** Text with values in it, in Handlebars' syntax, such as https://{{bucket.host}}. A key with dots is written as {{bucket.[tls.crt]}}. */
                template: string;
                /** What to do when the path names an element of a list that is not there: Wait for it, which is the default, or Append one with the fields that name it and the values of this binding. */
                onMissingElement?: "Wait" | "Append";
                /** The type of the value. Where it is silent, keys and templates become what the target's schema has at the path: text, an integer, a number, a boolean, or bytes; fields of objects, what a pointer finds, and a template that is one expression alone keep the type that they have. bytes are written in base64; json and yaml are parsed. */
                as?: "string" | "integer" | "number" | "boolean" | "bytes" | "json" | "yaml";
              }
          )[];
        }
    )[];
    /** Which workloads restart when a value changes that they depend on, in which order and at what pace. Without it nothing restarts. It begins when every target holds the new values. */
    rollout?: {
      /**
       * Names of sources that are Secrets, ConfigMaps or SecretProviderClasses: the workloads whose pods refer to them restart, each when a key changes that it refers to itself. In each source's own namespace. The account needs list and watch on kinds.
       *
       * @maxItems 16
       */
      consumersOf?: string[];
      /** The workloads whose pods refer to a Secret or ConfigMap of spec.targets restart, in the namespace of that object, each when a value changes that this binding writes into a key that it refers to. Targets with when AfterRollout do not count. The account needs list and watch on kinds in these namespaces. */
      consumersOfTargets?: boolean;
      /**
       * How pods refer to what consumersOf and consumersOfTargets look for. Other references, and the keys that only those name, do not count. All of them unless given. CSI is a volume of the Secrets Store CSI driver.
       *
       * @minItems 1
       * @maxItems 6
       */
      consumersBy?: ("Env" | "EnvFrom" | "Volume" | "Projected" | "ImagePullSecret" | "CSI")[];
      /**
       * The kinds of workloads among which consumersOf, consumersOfTargets and ownedByTargets look. Of the kind Job, those that have ended are deleted and created again; those of a CronJob never. The account needs create and delete on jobs for that.
       *
       * @minItems 1
       * @maxItems 8
       */
      kinds: ("Deployment" | "StatefulSet" | "DaemonSet" | "CronJob" | "Job" | "Rollout")[];
      /** The workloads that belong to an object of spec.targets by an owner reference restart when a key changes that the fields of this binding use. The account needs list and watch on kinds. */
      ownedByTargets?: boolean;
      /**
       * Workloads that restart when a key changes that the fields of this binding use; any key of its sources, if it has no fields.
       *
       * @maxItems 64
       *
       * Items: One workload, or all that a selector matches.
       */
      targets?: {
        /** Group and version; apps/v1, batch/v1 and argoproj.io/v1alpha1 for the kinds of kinds unless given. */
        apiVersion?: string;
        /** Deployment, StatefulSet, DaemonSet, CronJob, Job, Rollout, or any other kind with a pod template or a field that it restarts on. */
        kind: string;
        /** The workload's namespace, the binding's own unless given. Another namespace consents by a RoleBinding of inlay-rollouts to the account of this binding. */
        namespace?: string;
        /** The workload's name. Exactly one of name and selector. */
        name?: string;
        /** The workloads of the kind that match all that is given, as they come and go. The account needs list and watch on the kind. */
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
            /** The label that is asked about. */
            key: string;
            /** How it is to be. In and NotIn compare it with values; Exists and DoesNotExist ask whether it is there. */
            operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
            /**
             * What In and NotIn compare with.
             *
             * @maxItems 64
             */
            values?: string[];
          }[];
        };
        /** The path of the pod template, such as spec.template, whose metadata.annotations are stamped. Known of the kinds of kinds. */
        template?: string;
        /** A field that the workload restarts on, which is written in place of an annotation of its pod template: spec.restartAt of an Argo Rollout, or metadata.annotations["kubectl.kubernetes.io/restartedAt"] of a CloudNativePG Cluster. It holds a text. A field called restartAt is given a time, and an annotation of strimzi.io/ true, whatever stamp.value says. */
        restartPath?: string;
      }[];
      /**
       * Groups of workloads in order. Each waits until the group before has rolled out.
       *
       * @minItems 1
       * @maxItems 16
       *
       * Items: One group. A workload that several match belongs to the first of them.
       */
      steps?: {
        /** What it is called in status. */
        name: string;
        /** What becomes of the steps behind when a workload of this one fails to roll out. Halt waits until it has rolled out after all; Continue goes on without it. */
        onFailure: "Halt" | "Continue";
        /** Overrides spec.rollout.timeout for this step. */
        timeout?: string;
        /**
         * Names of sources that are Secrets, ConfigMaps or SecretProviderClasses: the workloads whose pods refer to them restart, each when a key changes that it refers to itself. In each source's own namespace. The account needs list and watch on kinds.
         *
         * @maxItems 16
         */
        consumersOf?: string[];
        /** The workloads whose pods refer to a Secret or ConfigMap of spec.targets restart, in the namespace of that object, each when a value changes that this binding writes into a key that it refers to. Targets with when AfterRollout do not count. The account needs list and watch on kinds in these namespaces. */
        consumersOfTargets?: boolean;
        /**
         * How pods refer to what consumersOf and consumersOfTargets look for. Other references, and the keys that only those name, do not count. All of them unless given. CSI is a volume of the Secrets Store CSI driver.
         *
         * @minItems 1
         * @maxItems 6
         */
        consumersBy?: ("Env" | "EnvFrom" | "Volume" | "Projected" | "ImagePullSecret" | "CSI")[];
        /**
         * The kinds of workloads among which consumersOf, consumersOfTargets and ownedByTargets look. Of the kind Job, those that have ended are deleted and created again; those of a CronJob never. The account needs create and delete on jobs for that.
         *
         * @minItems 1
         * @maxItems 8
         */
        kinds: ("Deployment" | "StatefulSet" | "DaemonSet" | "CronJob" | "Job" | "Rollout")[];
        /** The workloads that belong to an object of spec.targets by an owner reference restart when a key changes that the fields of this binding use. The account needs list and watch on kinds. */
        ownedByTargets?: boolean;
        /**
         * Workloads that restart when a key changes that the fields of this binding use; any key of its sources, if it has no fields.
         *
         * @maxItems 64
         *
         * Items: One workload, or all that a selector matches.
         */
        targets?: {
          /** Group and version; apps/v1, batch/v1 and argoproj.io/v1alpha1 for the kinds of kinds unless given. */
          apiVersion?: string;
          /** Deployment, StatefulSet, DaemonSet, CronJob, Job, Rollout, or any other kind with a pod template or a field that it restarts on. */
          kind: string;
          /** The workload's namespace, the binding's own unless given. Another namespace consents by a RoleBinding of inlay-rollouts to the account of this binding. */
          namespace?: string;
          /** The workload's name. Exactly one of name and selector. */
          name?: string;
          /** The workloads of the kind that match all that is given, as they come and go. The account needs list and watch on the kind. */
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
              /** The label that is asked about. */
              key: string;
              /** How it is to be. In and NotIn compare it with values; Exists and DoesNotExist ask whether it is there. */
              operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
              /**
               * What In and NotIn compare with.
               *
               * @maxItems 64
               */
              values?: string[];
            }[];
          };
          /** The path of the pod template, such as spec.template, whose metadata.annotations are stamped. Known of the kinds of kinds. */
          template?: string;
          /** A field that the workload restarts on, which is written in place of an annotation of its pod template: spec.restartAt of an Argo Rollout, or metadata.annotations["kubectl.kubernetes.io/restartedAt"] of a CloudNativePG Cluster. It holds a text. A field called restartAt is given a time, and an annotation of strimzi.io/ true, whatever stamp.value says. */
          restartPath?: string;
        }[];
      }[];
      /** What happens when a key is seen for the first time. None takes it as it is; Rollout restarts what uses it. IfDifferent restarts at the first sight of this binding if a field of a target with when AfterRollout holds another value than it would get, so that a record which another tool kept is the baseline. */
      onFirstSync: "None" | "Rollout" | "IfDifferent";
      /**
       * What counts as a change beside another value. SourceCreated: a source exists that did not. SourceDeleted: a source exists no more; a workload whose pods can't start without it waits until it is back. Neither unless given.
       *
       * @maxItems 2
       */
      restartOn?: ("SourceCreated" | "SourceDeleted")[];
      /** A CronJob that restarts also runs a Job at once, once for each restart, as kubectl create job --from makes it. One that is suspended runs none. The account needs create on jobs. */
      runCronJobs?: boolean;
      /** The annotation of the pod template that a restart changes. It belongs to the field manager inlay-rollout, whichever binding writes it, and stays when the binding goes. */
      stamp: {
        /** Its key. */
        annotation: string;
        /** What is written there. Revision is the number of this binding's rollout with a keyed digest; Time is when the change was noticed, as kubectl rollout restart writes it; ResourceVersion is that of the source that changed. */
        value: "Revision" | "Time" | "ResourceVersion";
      };
      /** How long the values must have stayed the same before anything restarts, such as 10s. Changes within it make one rollout. */
      debounce?: string;
      /** The longest that debounce holds a rollout back, however often values change. Ten times debounce unless given. */
      maxDebounce?: string;
      /** How long it is at least between the beginnings of two rollouts of this binding, such as 1h. */
      minInterval?: string;
      /** How many workloads of this binding may be rolling out at once. */
      maxConcurrent?: number;
      /**
       * When workloads may be restarted. Those that are rolling out when a window closes finish. At any time unless given.
       *
       * @minItems 1
       * @maxItems 16
       *
       * Items: A window that opens by a schedule, for so long.
       */
      windows?: {
        /** When it opens, in cron's five fields, such as 0 2 * * 1-5. */
        schedule: string;
        /** How long it stays open, such as 2h. */
        duration: string;
        /** The time zone of the schedule, by its name in the IANA database, such as Europe/Berlin. */
        timeZone: string;
      }[];
      /** How long a workload may take to roll out before it counts as failed. */
      timeout: string;
      /** Nothing restarts before the controllers of the targets have taken the new values in: the status.observedGeneration of each is that of the object, where it has one, and the condition holds. Targets of kinds without a status, such as Secrets, are not waited for. */
      waitForTargets?: {
        /** The type of a condition in each target's status that has to be True for the object as it is, such as Ready. */
        condition?: string;
      };
      /** The pods of StatefulSets and DaemonSets with updateStrategy OnDelete are replaced, one at a time, each when all others are ready, by eviction, which PodDisruptionBudgets can refuse. Otherwise they are left until somebody deletes them. The account needs list on pods and create on pods/eviction. */
      replacePods?: boolean;
      /** Workloads with a container that has no readiness probe are not restarted, and it is said so. Otherwise a warning is given once. */
      requireReadinessProbe?: boolean;
      /** Workloads of more than one replica are not restarted unless a PodDisruptionBudget selects their pods, and it is said so. Otherwise a warning is given once. The account needs list on poddisruptionbudgets. */
      requireDisruptionBudget?: boolean;
      /** While true, no workload is restarted. Afterwards what has changed meanwhile is caught up with, in one rollout. */
      suspend?: boolean;
    };
  };
  /** What became of it, and the record of what it wrote. Never a value. */
  status?: {
    /** The generation of the spec that this status speaks of. */
    observedGeneration?: number;
    /** How many targets hold the current values, of how many, such as 2/3. */
    synced?: string;
    /** Ready: whether every target holds the current values, and what to do if not. RolledOut, with spec.rollout: whether every workload has been restarted for the current values. */
    conditions?: {
      /** Ready or RolledOut. */
      type: string;
      /** True, False, or Unknown while the binding is suspended. */
      status: "True" | "False" | "Unknown";
      /** Synced or RolledOut, or the first reason why it is not. */
      reason: string;
      /** What is wrong, and what to do. Never a value. */
      message: string;
      /** Since when the status is what it is. */
      lastTransitionTime: string;
      /** The generation of the spec that this condition speaks of. */
      observedGeneration?: number;
    }[];
    /** The sources of which values were copied by a SecretGrant, such as "Secret storage/bucket". Without the grant these values must be rotated. */
    copiedSources?: string[];
    /** Every object that is or was written, with the record of what there is this binding's. Objects that were selected and are in the same state stand in one entry. */
    targets?: (
      | {
          /** Group and version in which it was written last. */
          apiVersion: string;
          /** Its kind. */
          kind: string;
          /** Its namespace, unless its kind belongs to the cluster. */
          namespace?: string;
          /** Its name. */
          name: string;
          /** The uid of the object that created, paths, pendingPaths and parents speak of. */
          uid?: string;
          objects?: never;
          /** Synced, or why it is not. */
          reason: string;
          /** What is wrong with it, and what to do. Never a value. */
          message?: string;
          /** What becomes of paths when this target is no longer named. */
          onRelease?: "Retain" | "Remove";
          /** This binding created or adopted the object, or was about to. The uid, or the object's label inlay.dev/created-by, shows whether it did. */
          created?: boolean;
          /** A digest of the manifest that was applied last, with the paths of the fields in it. */
          manifestDigest?: string;
          /** The fields that this binding holds. Never a value. */
          paths?: string[];
          /** The fields that are about to be written for the first time. Released like paths, never forced. */
          pendingPaths?: string[];
          /** The fields that another binding has, and that this one waits for. */
          awaitedPaths?: string[];
          /** The objects that came to be on the way to a path, removed with it when they are left empty. */
          parents?: string[];
        }
      | {
          /** Group and version in which it was written last. */
          apiVersion: string;
          /** Its kind. */
          kind: string;
          /** Its namespace, unless its kind belongs to the cluster. */
          namespace?: string;
          name?: never;
          /** The uid of the object that created, paths, pendingPaths and parents speak of. */
          uid?: string;
          /** The objects that were selected, as "namespace/name uid", or "name uid" where the kind belongs to the cluster; instead of namespace, name and uid. */
          objects: string[];
          /** Synced, or why it is not. */
          reason: string;
          /** What is wrong with it, and what to do. Never a value. */
          message?: string;
          /** What becomes of paths when this target is no longer named. */
          onRelease?: "Retain" | "Remove";
          /** This binding created or adopted the object, or was about to. The uid, or the object's label inlay.dev/created-by, shows whether it did. */
          created?: boolean;
          /** A digest of the manifest that was applied last, with the paths of the fields in it. */
          manifestDigest?: string;
          /** The fields that this binding holds. Never a value. */
          paths?: string[];
          /** The fields that are about to be written for the first time. Released like paths, never forced. */
          pendingPaths?: string[];
          /** The fields that another binding has, and that this one waits for. */
          awaitedPaths?: string[];
          /** The objects that came to be on the way to a path, removed with it when they are left empty. */
          parents?: string[];
        }
    )[];
    /**
     * The protected Secrets that hold the token of a ServiceAccount, with which they are deleted. Those who may not delete the Secret may not delete the ServiceAccount either.
     *
     * @maxItems 8
     */
    protectedTokens?: {
      /** The name of the Secret. */
      secret: string;
      /** The name of the ServiceAccount. */
      serviceAccountName: string;
    }[];
    /** Which values the workloads of spec.rollout were restarted for last, and what is still to be restarted. Never a value. */
    rollout?: {
      /** The id of the installation's key by which digests are made. */
      digestKeyID: string;
      /** How many rollouts have ended. */
      revision: number;
      /** A keyed digest of each value that a workload restarts for, by source and key, such as bucket/accessKeyID; with * for all keys of a source. Of a SecretProviderClass, one for each version that pods have. Or absent, where restartOn counts that there is no such source, or unmounted, where no pod mounts the class. */
      digests?: {
        [k: string]: string;
      };
      /** When the last rollout began. */
      lastStartTime?: string;
      /** The namespaces whose workloads can't be known. What uses the changed values there restarts when it can. */
      unknownNamespaces?: string[];
      /** The rollout that is under way, or waits. */
      pending?: {
        /** When the first change was noticed. */
        firstChangeTime: string;
        /** When the last change was noticed. */
        lastChangeTime: string;
        /** When the first workload was restarted for it. */
        startTime?: string;
        /** When one was last. */
        lastRestartTime?: string;
        /** What it is doing, or waits for. */
        reason: string;
        /** The same in words, with the time until which it waits, if that is known. */
        message: string;
        /** The digests that the workloads below are restarted for. */
        digests?: {
          [k: string]: string;
        };
        /** The workloads that the change concerns, in the order of the steps. */
        workloads?: {
          /** Group and version. */
          apiVersion: string;
          /** Its kind. */
          kind: string;
          /** Its namespace. */
          namespace: string;
          /** Its name. */
          name: string;
          /** Its uid. */
          uid: string;
          /** The step that it belongs to. */
          step?: string;
          /** How far it is. */
          state: "Waiting" | "Rolling" | "Done" | "Failed";
          /** What was written into its pod template. */
          stamp?: string;
          /** The uid of the copy of a Job that is deleted to be recreated. The new Job is made of that copy alone. */
          copyUID?: string;
          /** When that was. */
          restartTime?: string;
          /** What it waits for, or why it failed. */
          message?: string;
        }[];
      };
    };
  };
}
