/** The features beyond the usual ones that need permissions: other namespaces and accounts, pods, Jobs and PodDisruptionBudgets. */
import assert from "node:assert/strict";
import type { AnyObject } from "./api.ts";
import { eventually } from "./eventually.ts";
import { ended, newJob } from "./jobs.ts";
import { secretText } from "./leak-detector.ts";
import { type Feature, usual } from "./permitted.ts";
import { isReady, podsOf } from "./replaced.ts";
import type { TestNamespace } from "./test-namespace.ts";
import { deployment } from "./workloads.ts";

const otherOf = ({ namespace }: TestNamespace) => `${namespace}-other`;
const REPLICAS = 2;

export const everything: Feature = {
  spec: (team) => {
    const { sources, targets } = usual.spec(team);
    const fields = [{ path: "data.note", from: { source: "shared", key: "note" } }];
    const service = { apiVersion: "v1", resource: "services", name: "app", scope: "Namespaced" };
    const settings = { apiVersion: "v1", kind: "ConfigMap", name: "settings" };
    return {
      serviceAccountName: "rotator",
      sources: [
        ...sources,
        { name: "shared", configMap: { name: "shared", namespace: otherOf(team) } },
        { name: "service", object: service },
      ],
      targets: [
        ...targets,
        { ...settings, namespaceSelector: { matchLabels: { team: team.namespace } }, fields },
        { apiVersion: "v1", kind: "ConfigMap", selector: { matchLabels: { role: "copied" } }, fields },
        {
          ...settings,
          name: "address",
          create: { manifest: {} },
          onRelease: "Retain",
          fields: [{ path: "data.port", as: "string", from: { source: "service", fieldPath: "spec.ports[0].port" } }],
        },
      ],
      rollout: {
        consumersOf: ["bucket"],
        kinds: ["StatefulSet", "CronJob", "Job"],
        runCronJobs: true,
        replacePods: true,
        requireDisruptionBudget: true,
      },
    };
  },
  prepare: async (team) => {
    const { api, namespace } = team;
    const other = otherOf(team);
    await api.create("/api/v1/namespaces", { metadata: { name: other, labels: { team: namespace } } });
    const inOther = (plural: string, group = "api/v1") => `/${group}/namespaces/${other}/${plural}`;
    await api.create(inOther("configmaps"), { metadata: { name: "shared" }, data: { note: secretText("note") } });
    await api.create(inOther("configmaps"), { metadata: { name: "settings" } });
    await api.create(inOther("secretgrants", "apis/inlay.dev/v1alpha1"), {
      apiVersion: "inlay.dev/v1alpha1",
      kind: "SecretGrant",
      metadata: { name: "shared" },
      spec: { from: [{ namespace }], to: [{ kind: "ConfigMap", selector: { names: ["shared"] } }] },
    });
    await usual.prepare(team);
    await api.create(team.path("v1", "configmaps"), { metadata: { name: "one", labels: { role: "copied" } } });
    await api.create(team.path("v1", "services"), {
      metadata: { name: "app" },
      spec: { ports: [{ port: 80 }], selector: { app: "app" } },
    });
    // The PodDisruptionBudget must not select the pods of Jobs.
    const { selector, template } = (deployment("set", { env: { bucket: ["token"] } }) as AnyObject).spec;
    await api.create(team.path("apps/v1", "statefulsets"), {
      metadata: { name: "app" },
      spec: { serviceName: "app", replicas: REPLICAS, selector, template, updateStrategy: { type: "OnDelete" } },
    });
    await api.create(team.path("policy/v1", "poddisruptionbudgets"), {
      metadata: { name: "app" },
      spec: { maxUnavailable: 1, selector },
    });
    await newJob(team, "migrate");
    await ended(team);
    await eventually(async () => assert.equal((await podsOf(team)).filter(isReady).length >= REPLICAS, true), 60_000);
  },
  rotate: async (team) => {
    const note = { data: { note: secretText("note") } };
    await team.api.merge(`/api/v1/namespaces/${otherOf(team)}/configmaps/shared`, note);
    await usual.rotate(team);
  },
  missing: async (team) => {
    const noteOf = async (namespace: string, name: string): Promise<string> =>
      (await team.api.get(`/api/v1/namespaces/${namespace}/configmaps/${name}`)).data?.note;
    const note = await noteOf(otherOf(team), "shared");
    if ((await noteOf(otherOf(team), "settings")) !== note) return "the other namespace is outdated";
    if ((await noteOf(team.namespace, "one")) !== note) return "the selected ConfigMap is outdated";
    return usual.missing(team);
  },
};
