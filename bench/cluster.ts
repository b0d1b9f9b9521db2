/** The environment of every measurement: a cluster with Inlay installed, the CRD of HarborCluster in its real size, and fast clients. */
import { join } from "node:path";
import { Agent, request } from "undici";
import { type ControlPlane, startControlPlane } from "../test/control-plane/control-plane.ts";
import "../src/kube/orphan-streams.ts";
import { METADATA_ONLY } from "../src/kube/client.ts";
import { install } from "../test/control-plane/install.ts";
import { eventually } from "../test/controller/eventually.ts";
import { harborKind } from "../test/controller/harbor.ts";

/** In the cluster's folder. */
export const AUDIT_LOG = "audit.log";
/** The published CRD of HarborCluster is about this long. */
const CRD_BYTES = 500_000;
export const MERGE_PATCH = "application/merge-patch+json";

// biome-ignore lint/suspicious/noExplicitAny: answers of the API server, read where they are used
export type AnyObject = any;

export async function startCluster(): Promise<ControlPlane> {
  const cluster = await startControlPlane({
    apiServerFlags: [
      `--audit-policy-file=${join(import.meta.dirname, "audit-policy.yaml")}`,
      `--audit-log-path=${AUDIT_LOG}`,
      "--audit-log-maxsize=10000",
    ],
  });
  await install(cluster);
  const crd = weighted(await harborKind());
  await cluster.kubectlWith({ stdin: JSON.stringify(crd) }, "apply", "--server-side", "--filename=-");
  // For an instant, the conditions of the new CRD are null, which kubectl reports as an error.
  await eventually(() => cluster.kubectl("wait", "--for=condition=Established", "crd/harborclusters.goharbor.io"));
  return cluster;
}

/** The same schema with descriptions as long as the real ones. */
function weighted(crd: AnyObject): AnyObject {
  const schema = crd.spec.versions[0].schema.openAPIV3Schema;
  const spare = schema.properties.spec.properties;
  const words = "Selects what Harbor's component of this name is deployed with, as its operator documents it. ";
  for (let i = 0; JSON.stringify(crd).length < CRD_BYTES; i++)
    spare[`component${i}`] = {
      type: "object",
      properties: componentOf(() => ({ type: "string", description: words.repeat(4) })),
    };
  return crd;
}

const componentOf = <T>(fieldOf: () => T): Record<string, T> =>
  Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`field${n}`, fieldOf()]));

/** Values for a thousand fields of that schema, which make an object as large as this. */
export function weightOf(bytes: number): Record<string, object> {
  const value = "x".repeat(bytes / 1_000);
  return Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`component${i}`, componentOf(() => value)]));
}

/** A client over HTTP/2 that is limited only by the API server: the floor, with which Inlay is compared. */
export class Client {
  readonly #url: string;
  readonly #token: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent: Agent;

  /** `headers` are sent with each request. */
  constructor(cluster: ControlPlane, token = cluster.token("admin"), headers: Readonly<Record<string, string>> = {}) {
    this.#url = cluster.url;
    this.#token = token;
    this.#headers = headers;
    this.#agent = new Agent({
      allowH2: true,
      connections: 4,
      pipelining: 100,
      connect: { ca: cluster.caData },
      bodyTimeout: 0,
    });
  }

  async send(
    method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
    path: string,
    body?: object,
    contentType = "application/json",
    accept = "application/json",
  ) {
    const answer = await request(this.#url + path, {
      method,
      dispatcher: this.#agent,
      headers: { authorization: `Bearer ${this.#token}`, "content-type": contentType, accept, ...this.#headers },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${text.slice(0, 300)}`);
    return JSON.parse(text) as AnyObject;
  }

  /** The answers of this and of `apply` have the metadata only, because a fast client needs no more. */
  merge(path: string, patch: object) {
    return this.send("PATCH", path, patch, MERGE_PATCH, METADATA_ONLY);
  }

  apply(path: string, object: object) {
    const apply = "application/apply-patch+yaml";
    return this.send("PATCH", `${path}?fieldManager=bench&force=true`, object, apply, METADATA_ONLY);
  }

  /** Calls back for each existing object and each change, until it is stopped. */
  async watch(path: string, seen: (object: AnyObject, at: number) => void): Promise<() => void> {
    const stop = new AbortController();
    const { metadata, items } = await this.send("GET", path);
    for (const item of items) seen(item, performance.now());
    const follow = async () => {
      let version = metadata.resourceVersion;
      while (!stop.signal.aborted) {
        const query = `watch=true&allowWatchBookmarks=true&resourceVersion=${version}`;
        const answer = await request(`${this.#url}${path}?${query}`, {
          dispatcher: this.#agent,
          headers: { authorization: `Bearer ${this.#token}` },
          signal: stop.signal,
        });
        let rest = "";
        for await (const chunk of answer.body.setEncoding("utf8")) {
          const lines = (rest + chunk).split("\n");
          rest = lines.pop() ?? "";
          const at = performance.now();
          for (const line of lines) {
            const { type, object } = JSON.parse(line);
            if (type === "ERROR") throw new Error(`the watch of ${path} ended with ${object.reason}`);
            version = object.metadata.resourceVersion;
            if (type !== "BOOKMARK") seen(object, at);
          }
        }
      }
    };
    follow().catch((error) => {
      if (!stop.signal.aborted) throw error;
    });
    return () => stop.abort();
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** Runs `work` for 0 to count-1, `width` at the same time. */
export async function atOnce(count: number, width: number, work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, lane));
}
