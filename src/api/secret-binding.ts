/** Generated from apis/secretbindings.yaml by `npm run generate`. Do not edit. */
import type { ObjectMeta, OneOf } from "../apimachinery/objects.ts";

/** A SecretBinding copies values from Secrets, ConfigMaps, Vault and fields of other objects into fields of any object. It keeps these fields up to date, and releases them when the binding is deleted. */
export interface StoredBinding {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  /** The values to read, and the fields to write. */
  spec: {
    /** The name of the ServiceAccount in this namespace that Inlay impersonates to read every source and write every target. Its RBAC permissions decide what this binding may do. For a name other than inlay, a RoleBinding in this namespace must allow Inlay to impersonate the account. Defaults to inlay. */
    serviceAccountName: string;
    /** If true, Inlay writes nothing, and releases nothing unless the binding is deleted. When you set it to false, Inlay applies all changes since then. */
    suspend?: boolean;
    /** Confirms effects of this binding that you intend. ReadableCopies: values of Secrets are written where users can read them who may not read the Secret, which is in objects of other kinds or in other namespaces. Without it, an event and readablePaths in status report such copies. The configuration of Inlay can require it; then Inlay does not write such copies without it. */
    acknowledge?: "ReadableCopies"[];
    /** The key of an annotation that all sources must have with the same value; until then, Inlay writes nothing. Use it for values in several objects that belong together, because Inlay can't read several objects at one moment. */
    requireSame?: string;
    /** The settings of all sources and targets that do not override them. */
    defaults: {
      /** What Inlay does with fields whose source, or a key in it, is missing. Wait: the values that were written stay. Remove: Inlay removes these values. Defaults to Wait. */
      onMissing: "Wait" | "Remove";
      /** What Inlay does when another field manager owns a field that Inlay writes for the first time. Fail: Inlay reports the field manager and writes nothing to the target. Force: Inlay takes over the field. Defaults to Fail. */
      onConflict: "Fail" | "Force";
      /** What happens to a field when you delete the binding, or remove the target or field from it. It also applies to an object that a target with create created. Retain: the value or object stays, and Inlay no longer owns it. Remove: Inlay removes the value or deletes the object. Defaults to Remove for targets with create, and to Retain for all others. */
      onRelease?: "Retain" | "Remove";
      /** How long Inlay keeps the fields of a target. Continuous: always equal to the sources. Once: Inlay writes each field once to each object. Later changes of the source or the field have no effect. Defaults to Continuous. */
      mode: "Continuous" | "Once";
    };
    /**
     * The objects to read values from.
     *
     * Items: An object to read values from. Set exactly one of secret, configMap, object, vault and providerClass.
     */
    sources: ({
      /** The name by which fields and templates refer to this source. Defaults to the name of the object. Required for a source with vault. */
      name?: string;
      /** Overrides spec.defaults.onMissing for this source. */
      onMissing?: "Wait" | "Remove";
      /** If true, the binding is ready even if this source, or a key in it, is missing. Inlay omits the fields that need the missing value, and writes the other fields of the target. Defaults to false. */
      optional?: boolean;
      /** Denies changes and the deletion of the Secret or ConfigMap to all users but the writers and cluster admins, also to other bindings and to users who act as the account of this binding. The binding must have the label inlay.dev/protects=true. liftedBy decides who may delete this binding or weaken its protection. */
      protect?: {
        /** The users who may delete this binding, or change its protection, account or owners. Admins are cluster admins, the writers, and users with the verb unprotect on secretbindings, such as those with the role admin in the namespace. Writers are only cluster admins and the writers; to set it, you must have the verb unprotect. Defaults to Admins. */
        liftedBy?: "Admins" | "Writers";
        /** A sentence for users whose change is denied, such as whom to ask. The denial contains it. */
        message?: string;
        /** All users to whom RBAC gives this verb on the object are writers too, whatever role gives it, for the whole cluster or for the namespace. Choose a verb of your own, such as change-shared-secret. */
        writerVerb?: string;
        /**
         * The users and bindings that may change and delete the object, besides cluster admins. They need the RBAC permission too.
         *
         * Items: A subject, as in a RoleBinding, or a SecretBinding: then Inlay may write the object for that binding.
         */
        writers?: {
          /** The kind of the subject. */
          kind: "User" | "Group" | "ServiceAccount" | "SecretBinding";
          /** The name of the subject, as the API server knows it. */
          name: string;
          /** The namespace of the ServiceAccount or SecretBinding. Defaults to the namespace of this binding. */
          namespace?: string;
        }[];
      };
    } & OneOf<{
      /** A Secret. */
      secret: SourceReference;
      /** A ConfigMap. */
      configMap: SourceReference;
      /** A Vault or OpenBao server, which Inlay reads regularly through a VaultConnection. Set exactly one of data, metadata and health. Use its keys like the keys of a Secret. A value that is not a string becomes JSON. */
      vault: {
        /** The VaultConnection to read through. */
        connection: SourceReference;
        /** How often Inlay reads from the server, as a duration from 1s to 24h. To have Inlay read at once, change the annotation inlay.dev/refresh of the binding or the VaultConnection. Defaults to 1m. */
        refresh?: string;
      } & OneOf<{
        /** The data at a path of a KV secrets engine. */
        data: {
          /** The path where the secrets engine is mounted, such as kv. */
          mount: string;
          /** The path below the mount, as in the command vault kv get, without wildcards. */
          path: string;
          /** The version of the data to read. Defaults to the current version. */
          version?: number;
          /** The version of the KV secrets engine: 1 or 2. Defaults to 2. */
          kv?: 1 | 2;
        };
        /** The metadata of a path of a KV secrets engine of version 2, without its data. The keys are updated_time, created_time, current_version and custom_metadata. */
        metadata: {
          /** The path where the secrets engine is mounted, such as kv. */
          mount: string;
          /** The path below the mount, as in the command vault kv get, without wildcards. */
          path: string;
        };
        /** The health of a server, which Inlay reads without a login. The keys are initialized, sealed, standby, performance_standby, active and version. For a server that is shut down, sealed is true, and initialized, performance_standby and active are false. */
        health: {
          /** The URL of one server, without a path. Defaults to the address of the VaultConnection. The configuration of Inlay must list it in vault.addresses. */
          address?: string;
        };
      }>;
      /** An object of any other kind, in this namespace or cluster-scoped. */
      object: {
        /** The group and version, such as v1 or apps/v1. */
        apiVersion: string;
        /** The plural name of the kind, as kubectl api-resources lists it, such as services. */
        resource: string;
        /** The name of the object. */
        name: string;
        /** Whether the object is in this namespace (Namespaced) or cluster-scoped (Cluster). Defaults to Namespaced. */
        scope?: "Namespaced" | "Cluster";
      };
      /** A SecretProviderClass of the Secrets Store CSI driver in this namespace. Inlay reads the SecretProviderClassPodStatus objects of the pods that mount it. The keys are the ids of the external objects, and the values are their versions, never the contents. While pods have different versions, the value has one line for each version. The account needs list and watch on secretproviderclasspodstatuses. */
      providerClass: {
        /** The name of the SecretProviderClass. */
        name: string;
      };
    }>)[];
    /**
     * The objects to write to. They must exist, unless create is set. A binding with rollout needs no targets.
     *
     * Items: One object, or all objects that selectors match. If several targets match an object, the target with its name applies, otherwise the first one in the list. The other targets do not write to the object.
     */
    targets: ({
      /** The group and version, such as goharbor.io/v1beta1. */
      apiVersion: string;
      /** The kind, such as HarborCluster. */
      kind: string;
      /** The namespace of the target. Defaults to the namespace of this binding. Not for cluster-scoped kinds. */
      namespace?: string;
      /** Selects the namespaces that match all criteria, including namespaces that are created later. With name, the target is one object in each namespace; with selector, the matching objects in all of them. The account needs list and watch on namespaces, unless names is the only criterion and has no * and ?. */
      namespaceSelector?: Selector;
      /** When Inlay writes a value. BeforeRollout: at once; the rollout begins afterwards. AfterRollout: when every workload has rolled out for the value; a value that changes meanwhile waits for its own rollout. Defaults to BeforeRollout. */
      when?: "BeforeRollout" | "AfterRollout";
      /** Overrides spec.defaults.mode for this target. */
      mode?: "Continuous" | "Once";
      /** Overrides spec.defaults.onConflict for this target. */
      onConflict?: "Fail" | "Force";
      /** Overrides spec.defaults.onRelease for this target. */
      onRelease?: "Retain" | "Remove";
      /** Creates the object when every value exists, and keeps it equal to the manifest and the fields. Inlay never changes an object of that name that this binding did not create, unless adopt is set. */
      create?: {
        /** Takes over an object of that name that this binding did not create. Equal: only if it already has everything that the binding would write. Any: Inlay overwrites what differs. Inlay then treats the object as one that the binding created, and deletes it with the binding unless onRelease is Retain. If unset, Inlay reports a Conflict and does not change the object. */
        adopt?: "Equal" | "Any";
        /** If true, the data and binaryData of this Secret or ConfigMap have only the keys that this binding writes: Inlay removes all other keys. It also removes those of an object that it adopts, which count as a difference for adopt: Equal. Otherwise, keys of others stay. */
        exact?: boolean;
        /** What Inlay does when the object must change in a field that can't change, such as the type of a Secret, or the data of an object with immutable: true. Fail: it reports Immutable. Recreate: it deletes the object and creates it again at once, but only an object that it created, never one that it adopted. The account then needs delete. Defaults to Fail. */
        onImmutable?: "Fail" | "Recreate";
        /** The metadata of the source that Inlay also copies, for a field with path data that copies all data of one source. Labels and annotations of the manifest have precedence. Inlay copies at most 32 of each, and none by which Kubernetes or another tool finds or manages its objects. */
        copy?: {
          /** The keys of the labels that Inlay copies, as patterns; * matches any characters, and ? matches one character. */
          labels?: string[];
          /** The keys of the annotations that Inlay copies, as patterns; * matches any characters, and ? matches one character. */
          annotations?: string[];
        };
        /** The object without apiVersion, kind, name, namespace and status. Of metadata, only labels and annotations are allowed. Inlay adds the values of fields to it. Do not write secret values here. */
        manifest: Record<string, unknown>;
      };
      /**
       * The fields to write, all in one request. Required without create.
       *
       * Items: One field to write. Set exactly one of from and template.
       */
      fields?: ({
        /** The path of the field from the root of the object, such as spec.storage.spec.s3.accesskey. Quote a key with dots or slashes: metadata.annotations["example.com/key"]. Select an element of a list by its fields, as in spec.triggers[name=web].metadata.token, or by its index, as in spec.hosts[0].host. */
        path: string;
        /** What Inlay does when the path selects an element of a list that does not exist. Wait: Inlay waits until it exists. Append: Inlay appends an element with the fields in the path and the values of this binding. Defaults to Wait. */
        onMissingElement?: "Wait" | "Append";
        /** The type of the written value. If unset, a key or template gets the type that the schema of the target has at the path: string, integer, number, boolean or bytes. A field of an object, a value that pointer selects, and a template of one expression keep their type. bytes are encoded in base64; json and yaml are parsed. */
        as?: "string" | "integer" | "number" | "boolean" | "bytes" | "json" | "yaml";
      } & OneOf<{
        /** The source of the value, which Inlay copies unchanged. For a Secret, ConfigMap, Vault or SecretProviderClass, set key, and pointer to select a value within it; for an object, set fieldPath. With neither key nor fieldPath, Inlay copies all data as an object with these keys; include and exclude select among them. With sources instead of source, it copies all data of several sources. */
        from: {
          /** What Inlay does when several sources have the same key. Fail: it writes nothing and reports InvalidValue. LaterWins: the value of the later source in sources counts. Defaults to Fail. */
          onCollision?: "Fail" | "LaterWins";
          /** A key of the source. */
          key?: string;
          /** A JSON pointer (RFC 6901) into the JSON or YAML that the key holds, such as /spec/secretS3/endpoint. */
          pointer?: string;
          /** The path of a field from the root of the object, such as spec.clusterIP. It can select elements of lists, as the path of a target does. */
          fieldPath?: string;
          /** Regular expressions (RE2). Inlay copies only keys that one of them matches anywhere. Defaults to all keys. */
          include?: string[];
          /** Regular expressions (RE2). Inlay does not copy keys that one of them matches anywhere, even if include matches them. */
          exclude?: string[];
        } & OneOf<{
          /** The name of a source in spec.sources. */
          source: string;
          /** The names of several sources in spec.sources, whose data Inlay copies together, in this order. It omits an optional source that is missing. */
          sources: string[];
        }>;
        /** A text with values in it, in the syntax of Handlebars, such as https://{{bucket.host}}. Write a key with dots as {{bucket.[tls.crt]}}. */
        template: string;
      }>)[];
    } & OneOf<{
      /** The name of the object. Set exactly one of name and selector. */
      name: string;
      /** Selects the objects that match all criteria, including objects that are created later. Inlay releases an object that no longer matches. The account needs list and watch on the kind. */
      selector: Selector;
    }>)[];
    /** The workloads that restart when a value changes that they depend on, with their order and pace. Without it, nothing restarts. A rollout begins when every target holds the new values. */
    rollout?: {
      /** The names of sources with secret, configMap or providerClass. Workloads in the namespace of the source whose pods refer to it restart when a key changes that their own pods refer to. The account needs list and watch on kinds. */
      consumersOf?: string[];
      /** If true, workloads restart whose pods refer to a Secret or ConfigMap in spec.targets, in the namespace of that object. Each restarts when this binding writes a new value to a key that its pods refer to. Targets with when: AfterRollout do not count. The account needs list and watch on kinds in these namespaces. */
      consumersOfTargets?: boolean;
      /** The kinds of references from pods that consumersOf and consumersOfTargets look for. Other references, and keys that only they name, do not count. SubPath is a file that a container mounts by subPath or subPathExpr from a volume of any kind; it never changes while the container runs. Volume and Projected include such files. CSI is a volume of the Secrets Store CSI driver. Defaults to all kinds of references. */
      consumersBy?: ("Env" | "EnvFrom" | "Volume" | "SubPath" | "Projected" | "ImagePullSecret" | "CSI")[];
      /** The kinds of workloads that consumersOf, consumersOfTargets and ownedByTargets look for. With Job, Inlay deletes and recreates Jobs that have finished, but never Jobs of a CronJob; the account then needs create and delete on jobs. */
      kinds: ("Deployment" | "StatefulSet" | "DaemonSet" | "CronJob" | "Job" | "Rollout")[];
      /** If true, workloads that an object in spec.targets owns by an owner reference restart when a key changes that the fields of this binding use. The account needs list and watch on kinds. */
      ownedByTargets?: boolean;
      /**
       * The workloads that restart when a key changes that the fields of this binding use, or any key of its sources if the binding has no fields.
       *
       * Items: One workload, or all workloads that a selector matches.
       */
      targets?: WorkloadTarget[];
      /**
       * Groups of workloads that restart in order. Each step begins when all workloads of the step before have rolled out.
       *
       * Items: A group of workloads. A workload that several steps match belongs to the first of them.
       */
      steps?: {
        /** The name of the step in status. */
        name: string;
        /** What Inlay does with the other workloads of this step and with later steps when a workload of this step fails to roll out. Halt: they wait until it has rolled out. Continue: they restart without it. Defaults to Halt. */
        onFailure?: "Halt" | "Continue";
        /** Overrides spec.rollout.timeout for this step. */
        timeout?: string;
        /** The names of sources with secret, configMap or providerClass. Workloads in the namespace of the source whose pods refer to it restart when a key changes that their own pods refer to. The account needs list and watch on kinds. */
        consumersOf?: string[];
        /** If true, workloads restart whose pods refer to a Secret or ConfigMap in spec.targets, in the namespace of that object. Each restarts when this binding writes a new value to a key that its pods refer to. Targets with when: AfterRollout do not count. The account needs list and watch on kinds in these namespaces. */
        consumersOfTargets?: boolean;
        /** The kinds of references from pods that consumersOf and consumersOfTargets look for. Other references, and keys that only they name, do not count. SubPath is a file that a container mounts by subPath or subPathExpr from a volume of any kind; it never changes while the container runs. Volume and Projected include such files. CSI is a volume of the Secrets Store CSI driver. Defaults to all kinds of references. */
        consumersBy?: ("Env" | "EnvFrom" | "Volume" | "SubPath" | "Projected" | "ImagePullSecret" | "CSI")[];
        /** The kinds of workloads that consumersOf, consumersOfTargets and ownedByTargets look for. With Job, Inlay deletes and recreates Jobs that have finished, but never Jobs of a CronJob; the account then needs create and delete on jobs. Defaults to Deployment, StatefulSet and DaemonSet. */
        kinds?: ("Deployment" | "StatefulSet" | "DaemonSet" | "CronJob" | "Job" | "Rollout")[];
        /** If true, workloads that an object in spec.targets owns by an owner reference restart when a key changes that the fields of this binding use. The account needs list and watch on kinds. */
        ownedByTargets?: boolean;
        /**
         * The workloads that restart when a key changes that the fields of this binding use, or any key of its sources if the binding has no fields.
         *
         * Items: One workload, or all workloads that a selector matches.
         */
        targets?: WorkloadTarget[];
      }[];
      /** What Inlay does when it reads a key for the first time. None: it records the value, and restarts nothing. Rollout: it restarts the workloads that use the key. IfDifferent: when Inlay first reconciles this binding, it restarts them if a field of a target with when: AfterRollout has a value that differs from the one to be written. Use IfDifferent when another tool has maintained that field. */
      onFirstSync: "None" | "Rollout" | "IfDifferent";
      /** Additional changes that restart workloads. SourceCreated: a source is created. SourceDeleted: a source is deleted; a workload whose pods can't start without the source waits until it exists again. Defaults to none. */
      restartOn?: ("SourceCreated" | "SourceDeleted")[];
      /** If true, a CronJob that restarts also runs a Job at once, as kubectl create job --from does, once for each restart. A suspended CronJob runs none. The account needs create on jobs. Defaults to false. */
      runCronJobs?: boolean;
      /** The annotation of the pod template that Inlay changes to restart a workload. The field manager inlay-rollout owns it, for all bindings. It stays when the binding is deleted. */
      stamp: {
        /** The key of the annotation. */
        annotation: string;
        /** The value of the annotation. Revision: the number of the rollout of this binding, with a keyed digest. Time: when Inlay noticed the change, in the format of kubectl rollout restart. ResourceVersion: the resourceVersion of the source that changed. */
        value: "Revision" | "Time" | "ResourceVersion";
      };
      /** How long all values must stay the same before a rollout begins, such as 10s. Changes within this time lead to one rollout. */
      debounce?: string;
      /** The longest time that debounce delays a rollout while values keep changing. Defaults to ten times debounce. */
      maxDebounce?: string;
      /** The shortest time between the starts of two rollouts of this binding, such as 1h. */
      minInterval?: string;
      /** The number of workloads of this binding that may roll out at the same time. */
      maxConcurrent?: number;
      /**
       * The times when workloads may restart. A workload that is rolling out when a window closes finishes. Defaults to any time.
       *
       * Items: A time window that opens on a schedule.
       */
      windows?: {
        /** When the window opens, in the five fields of cron, such as 0 2 * * 1-5. */
        schedule: string;
        /** How long the window stays open, such as 2h. */
        duration: string;
        /** The time zone of the schedule, as a name in the IANA database, such as Europe/Berlin. Defaults to UTC. */
        timeZone?: string;
      }[];
      /** How long a workload may take to roll out before it counts as failed. */
      timeout: string;
      /** If set, Inlay restarts workloads only after the controllers of the targets have observed the new values. For each target, status.observedGeneration must equal metadata.generation, if the status has it, and condition must be True. Inlay does not wait for kinds without a status, such as Secret. */
      waitForTargets?: {
        /** The type of a condition in the status of each target that must be True for its current generation, such as Ready. */
        condition?: string;
      };
      /** If true, Inlay replaces the pods of StatefulSets and DaemonSets with updateStrategy OnDelete. It evicts one pod at a time, when all others are ready; a PodDisruptionBudget can refuse this. If false, the old pods run until you delete them. The account needs list on pods and create on pods/eviction. Defaults to false. */
      replacePods?: boolean;
      /** If true, Inlay does not restart a workload with a container that has no readiness probe, and reports it. If false, Inlay restarts it and warns once. Defaults to false. */
      requireReadinessProbe?: boolean;
      /** If true, Inlay does not restart a workload with more than one replica if no PodDisruptionBudget selects its pods, and reports it. If false, Inlay restarts it and warns once. The account needs list on poddisruptionbudgets. Defaults to false. */
      requireDisruptionBudget?: boolean;
      /** If true, no workload restarts. When you set it to false, one rollout covers all changes since then. Defaults to false. */
      suspend?: boolean;
    };
  };
  /** The state of the binding, and the record of the fields that it wrote. It never contains a value. */
  status?: {
    /** The text of the annotation inlay.dev/refresh that Inlay handled last, at most 256 characters of it. */
    lastHandledRefresh?: string;
    /** The generation of the spec that this status describes, or -1 before the first status. */
    observedGeneration?: number;
    /** The number of targets that hold the current values, of the number of all targets, such as 2/3. */
    synced?: string;
    /** Ready: whether every target holds the current values, and what to do if not. RolledOut, only with spec.rollout: whether every workload has restarted for the current values. InstallationComplete, only if a part of the installation is missing on which the binding depends: False, with the reason. Reconciling: True while Inlay waits, retries or rolls out. Stalled: True while only a change of the spec, or of what Inlay reads and writes, can help, and once a problem that a user must fix has lasted for a minute. Neither exists otherwise. */
    conditions?: Condition[];
    /** Notes that are no problems: a selector that matches no object, and values that the last release could not remove, because other field managers own them too. */
    notes?: string[];
    /** The first problems, as parts for tools, the most urgent one first. The conditions have the same as sentences. */
    problems?: {
      /** The target that has the problem. Without a name, its objects are not known. */
      target?: {
        /** Its apiVersion, as in the binding. */
        apiVersion: string;
        /** Its kind. */
        kind: string;
        /** Its namespace. Omitted for a cluster-scoped object. */
        namespace?: string;
        /** Its name. Omitted if the binding selects objects and it is not known which. */
        name?: string;
      };
      /** The name of the source in the binding that has the problem. */
      source?: string;
      /** The reason, as in the conditions. */
      reason: string;
      /** Where in the target or in the binding, such as spec.storage.s3.accessKey. */
      path?: string;
      /** What is wrong. */
      message: string;
      /** What to do. Before a command, it says what the command does. */
      fix?: string;
      /** The command that fixes it, or that shows the cause. */
      command?: string;
    }[];
    /** The commands that grant all permissions that the account of this binding lacks, one line for each Role. Set while a condition or a target has the reason Forbidden. */
    missingPermissions?: string;
    /** The sources whose values this binding copied by a SecretGrant, such as "Secret storage/bucket". Rotate these values when the grant is withdrawn. */
    copiedSources?: string[];
    /** Every object that this binding writes or has written, with a record of what it wrote. Selected objects in the same state share one entry. */
    targets?: ({
      /** The group and version of the last write. */
      apiVersion: string;
      /** The kind of the object. */
      kind: string;
      /** The namespace of the object. Unset for cluster-scoped kinds. */
      namespace?: string;
      /** The uid of the object that created, paths, pendingPaths and parents describe. */
      uid?: string;
      /** Synced, or the reason why the object does not hold the current values. */
      reason: string;
      /** What is wrong with the object and what to do, or a note on it. It never contains a value. */
      message?: string;
      /** What happens to paths when the binding no longer names this target. */
      onRelease?: "Retain" | "Remove";
      /** Whether this binding created or adopted the object, or was about to. The uid, or the label inlay.dev/created-by of the object, shows whether it did. */
      created?: boolean;
      /** Whether this binding adopted the object, or was about to, instead of creating it. If unset for an object of this binding, an earlier version of Inlay created or adopted it. */
      adopted?: boolean;
      /** A digest of the manifest that was last applied, with the paths of the fields in it. */
      manifestDigest?: string;
      /** Set if the API server stores a value in a similar form, such as in lower case. It is a digest of the generation and the versions of the sources from which Inlay wrote the value, and not of the value. While they are the same, the stored form needs no other write. */
      normalizedFor?: string;
      /** The paths of the fields that this binding owns. */
      paths?: string[];
      /** The paths, among those in paths, whose values come from a Secret and can be read here by more users than in the Secret. Unset if the binding acknowledges ReadableCopies. */
      readablePaths?: string[];
      /** The paths of the fields that Inlay is about to write for the first time. Inlay releases them like paths, and never forces them. */
      pendingPaths?: string[];
      /** The paths, among those in pendingPaths, where the API server kept the value from before when Inlay wrote the first time. A release keeps that value. */
      revertedPaths?: string[];
      /** The paths of the fields that another binding owns, and that this binding waits for. */
      awaitedPaths?: string[];
      /** The parent objects that were created to write a path. Inlay removes them with the path if they are empty then. */
      parents?: string[];
    } & OneOf<{
      /** The name of the object. */
      name: string;
      /** The selected objects, as "namespace/name uid", or "name uid" for cluster-scoped kinds. It replaces namespace, name and uid. */
      objects: string[];
    }>)[];
    /** The protected Secrets with the token of a ServiceAccount. Kubernetes deletes such a Secret with its ServiceAccount. Users who may not delete the Secret may not delete the ServiceAccount either. */
    protectedTokens?: {
      /** The name of the Secret. */
      secret: string;
      /** The name of the ServiceAccount. */
      serviceAccountName: string;
    }[];
    /** The values that the workloads of spec.rollout last restarted for, as digests, and the pending restarts. It never contains a value. */
    rollout?: {
      /** The id of the digest key of the installation. */
      digestKeyID: string;
      /** The number of finished rollouts. */
      revision: number;
      /** A keyed digest of each value that a workload restarts for. The keys are source and key, such as bucket/accessKeyID, or bucket/* for all keys of a source. A SecretProviderClass has one digest for each version that pods have. The value is absent if restartOn counts a missing source, and unmounted if no pod mounts the class. */
      digests?: Record<string, string>;
      /** When the last rollout began. */
      lastStartTime?: string;
      /** When you asked to continue after restarts were too frequent. Earlier restarts do not count. */
      restartsCountedFrom?: string;
      /** When a value last changed, while values keep changing since Inlay stopped restarts that were too frequent. */
      unsettledTime?: string;
      /** The namespaces whose workloads Inlay can't read. Workloads there that use changed values restart when Inlay can read them again. */
      unknownNamespaces?: string[];
      /** The rollout that is running or waiting. */
      pending?: {
        /** When Inlay noticed the first change. */
        firstChangeTime: string;
        /** When Inlay noticed the last change. */
        lastChangeTime: string;
        /** When the first workload restarted. */
        startTime?: string;
        /** When the last workload restarted. */
        lastRestartTime?: string;
        /** What the rollout is doing or waiting for. */
        reason: string;
        /** The reason in words, with the time until which the rollout waits, if it is known. */
        message: string;
        /** The digests that the workloads below restart for. */
        digests?: Record<string, string>;
        /** The workloads that the change affects, in the order of the steps. */
        workloads?: {
          /** The group and version of the workload. */
          apiVersion: string;
          /** The kind of the workload. */
          kind: string;
          /** The namespace of the workload. */
          namespace: string;
          /** The name of the workload. */
          name: string;
          /** The uid of the workload. */
          uid: string;
          /** The name of the step that the workload belongs to. */
          step?: string;
          /** The progress of the restart. */
          state: "Waiting" | "Rolling" | "Done" | "Failed";
          /** The value that Inlay wrote to restart the workload. */
          stamp?: string;
          /** The uid of the copy of a Job that Inlay deletes to recreate it. Inlay recreates the Job only from that copy. */
          copyUID?: string;
          /** The text that the restart wrote, if it is not the stamp. */
          written?: string;
          /** The text that was there before the restart. */
          replaced?: string;
          /** The generation of the workload after the restart, if its kind has no status subresource. */
          generation?: number;
          /** How many restarts for these values were reverted and repeated. */
          reverts?: number;
          /** When Inlay first restarted the workload for these values, if a restart was reverted. */
          firstRestartTime?: string;
          /** When Inlay restarted the workload. */
          restartTime?: string;
          /** What the workload waits for, or why it failed. */
          message?: string;
        }[];
      };
    };
  };
}

export interface SourceReference {
  /** The name of the Secret. Or: The name of the ConfigMap. Or: The name of the VaultConnection. */
  name: string;
  /** The namespace of the object. Defaults to the namespace of this binding. For another namespace, a SecretGrant there must permit this binding to read the object, and the account needs the RBAC permission too. Or: The namespace of the VaultConnection. Defaults to the namespace of this binding. For another namespace, a SecretGrant there must permit this binding to use the VaultConnection. */
  namespace?: string;
  /** If true, Inlay reads the object only if a SecretGrant in its namespace permits it, even in the namespace of this binding. The grant replaces the permission of the binding's author to get the object. The account needs the RBAC permission too. An object in another namespace always needs a SecretGrant. Defaults to false. Or: If true, Inlay uses the VaultConnection only if a SecretGrant in its namespace permits it, even in the namespace of this binding. The grant replaces the permission of the binding's author to use it. A VaultConnection in another namespace always needs a SecretGrant. Defaults to false. */
  granted?: boolean;
}

export interface Selector {
  /** The name must match one of these patterns; * matches any characters, and ? matches one character. */
  names?: string[];
  /** The name must match none of these patterns; * matches any characters, and ? matches one character. */
  exceptNames?: string[];
  /** The object must have all these labels with these values. */
  matchLabels?: Record<string, string>;
  /** The labels must meet all these requirements. */
  matchExpressions?: MatchExpression[];
}

export interface MatchExpression {
  /** The key of the label. */
  key: string;
  /** In and NotIn compare the value of the label with values. Exists and DoesNotExist check whether the label exists. */
  operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  /** The values for In and NotIn. */
  values?: string[];
}

export type WorkloadTarget = {
  /** The group and version. Defaults to apps/v1, batch/v1 or argoproj.io/v1alpha1 for the kinds that the field kinds allows. Required for any other kind. */
  apiVersion?: string;
  /** The kind: Deployment, StatefulSet, DaemonSet, CronJob, Job, Rollout, or any other kind with a pod template or a field that restarts it. */
  kind: string;
  /** The namespace of the workload. Defaults to the namespace of this binding. In another namespace, a RoleBinding must give the account of this binding the ClusterRole inlay-rollouts. */
  namespace?: string;
  /** The path of the pod template whose annotations Inlay changes, such as spec.template. Not needed for the kinds that the field kinds allows. */
  template?: string;
  /** The path of the field that restarts a workload without a pod template, such as spec.restartAt of an Argo Rollout, or metadata.annotations["kubectl.kubernetes.io/restartedAt"] of a CloudNativePG Cluster. The field must be a string. Inlay writes a time to a field called restartAt, and true to an annotation of strimzi.io/, whatever stamp.value is. */
  restartPath?: string;
} & OneOf<{
  /** The name of the workload. Set exactly one of name and selector. */
  name: string;
  /** Selects the workloads that match all criteria, including workloads that are created later. The account needs list and watch on the kind. */
  selector: Selector;
}>;

export interface Condition {
  /** Ready, RolledOut, InstallationComplete, Reconciling or Stalled. Or: Accepted, Ready, Reconciling or Stalled. */
  type: string;
  /** True or False, or Unknown while the binding is suspended. Or: True, False or Unknown. */
  status: "True" | "False" | "Unknown";
  /** Synced or RolledOut, or the first reason for another status. Or: A word that programs can compare. */
  reason: string;
  /** What is wrong and what to do. It never contains a value. Or: The reason in words, with what to do. */
  message: string;
  /** When the status last changed. */
  lastTransitionTime: string;
  /** The generation of the spec that this condition describes. */
  observedGeneration?: number;
}
