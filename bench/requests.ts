/**
 * What single requests cost the API server, etcd and the client, by connection, identity, kind of write, and form of the answer; and what
 * watches cost it for each change. Shows which part of a change's cost could be saved at all.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import { METADATA_ONLY } from "../src/kube/client.ts";
import { processorSeconds, usedSince } from "./beside.ts";
import { type AnyObject, atOnce, MERGE_PATCH } from "./cluster.ts";
import { harborPatch, secretChange, type Write } from "./course.ts";
import type { Rig } from "./rig.ts";
import { median } from "./table.ts";
import {
  bindingPath,
  deploymentPath,
  dropBindings,
  harborPath,
  makeBindings,
  makeDeployments,
  makeHarbors,
  makeNamespace,
  makeSecrets,
  secretPath,
} from "./world.ts";

const NAMESPACE = "requests";
const OBJECTS = 100;
const WIDTH = 16;
const REQUESTS = 1_500;
const SINGLE = 60;
const WATCHES = 20;
const MANAGER = "fieldManager=bench";
const STAMP = "bench.example.com/stamp";
const PROTOBUF = "application/vnd.kubernetes.protobuf";
const FORMS: readonly (readonly [form: string, accept: string])[] = [
  ["JSON", "application/json"],
  ["JSON, metadata", METADATA_ONLY],
  ["protobuf", PROTOBUF],
  ["protobuf, metadata", METADATA_ONLY.replace("application/json", PROTOBUF)],
];

interface Message {
  method?: "GET" | "PATCH" | "PUT";
  path: string;
  body?: object;
  type?: string;
  accept?: string;
  answered?(object: AnyObject): void;
}
/** The request for object `i`, with a value that differs for each `n`. */
type MessageOf = (i: number, n: number) => Message;

/** A client: its connections and its identity. */
interface Sender {
  name: string;
  agent: Agent;
  headers: Record<string, string>;
}
type Senders = Awaited<ReturnType<typeof sendersOf>>;
type Case = [what: string, messageOf: MessageOf, senders: readonly Sender[]];

export async function measureRequests(rig: Rig): Promise<void> {
  const { client, cluster, table } = rig;
  await makeNamespace(client, NAMESPACE);
  await makeSecrets(client, () => NAMESPACE, OBJECTS);
  await makeHarbors(client, () => NAMESPACE, OBJECTS);
  await makeDeployments(client, NAMESPACE, OBJECTS, OBJECTS);
  await makeBindings(client, () => NAMESPACE, OBJECTS);
  // It would create a ReplicaSet for each change of a Deployment.
  const controllers = cluster.processes.get("kube-controller-manager");
  await controllers?.kill("SIGSTOP");
  const senders = await sendersOf(rig);
  table.note("milliseconds of a core for each request, and the median latency of a single one:");
  table.cells("request", "API server", "etcd", "client", "median");
  const cases = [
    ...(await readsOf(rig, senders)),
    ...(await writesOf(rig, "HarborCluster", senders)),
    ...(await writesOf(rig, "Deployment", senders)),
    ...(await statusWritesOf(rig, senders)),
  ];
  for (const [what, messageOf, by] of cases) for (const sender of by) await measureCase(rig, what, sender, messageOf);
  await measureWatches(rig, senders.account);
  await Promise.all(Object.values(senders).map(({ agent }) => agent.destroy()));
  await controllers?.kill("SIGCONT");
  await dropBindings(client);
}

/** Inlay's controller impersonates the account over two connections, and the floor is the admin with four. */
async function sendersOf({ cluster }: Rig) {
  const agentOf = (connections: number, allowH2: boolean) =>
    new Agent({ allowH2, connections, pipelining: allowH2 ? 100 : 1, bodyTimeout: 0, connect: { ca: cluster.caData } });
  const tokenOf = async (namespace: string, name: string) =>
    (await cluster.kubectl("create", "token", name, `--namespace=${namespace}`, "--duration=24h")).stdout.trim();
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const account = {
    ...bearer(await tokenOf("inlay-system", "inlay-controller")),
    "impersonate-user": `system:serviceaccount:${NAMESPACE}:inlay`,
  };
  const admin = bearer(cluster.token("admin"));
  const ofAccount = (name: string, agent: Agent) => ({ name: `impersonated, ${name}`, agent, headers: account });
  return {
    account: ofAccount("HTTP/2 x2", agentOf(2, true)),
    one: ofAccount("HTTP/2 x1", agentOf(1, true)),
    eight: ofAccount("HTTP/2 x8", agentOf(8, true)),
    http1: ofAccount("HTTP/1.1 x16", agentOf(WIDTH, false)),
    token: {
      name: "account's token, HTTP/2 x2",
      agent: agentOf(2, true),
      headers: bearer(await tokenOf(NAMESPACE, "inlay")),
    },
    admin: { name: "admin, HTTP/2 x4", agent: agentOf(4, true), headers: admin },
  };
}

/** The objects of a collection, by name. */
async function objectsOf({ client }: Rig, collection: string): Promise<(name: string) => AnyObject> {
  const { items } = await client.send("GET", collection);
  const byName = new Map<string, AnyObject>(items.map((each: AnyObject) => [each.metadata.name, each]));
  return (name) => byName.get(name);
}

async function readsOf(rig: Rig, senders: Senders): Promise<Case[]> {
  const secretOf = await objectsOf(rig, secretPath(NAMESPACE));
  const path = (i: number) => secretPath(NAMESPACE, `s-${i}`);
  const seen = (i: number) => `${path(i)}?resourceVersion=${secretOf(`s-${i}`).metadata.resourceVersion}`;
  const { account, one, eight, http1, token, admin } = senders;
  return [
    ["GET of a Secret, from etcd", (i) => ({ path: path(i) }), [account]],
    ["GET of a Secret, from memory", (i) => ({ path: seen(i) }), [account, one, eight, http1, token, admin]],
    ["merge patch of a Secret", (i, n) => mergeOf(secretChange(NAMESPACE, i, `v-${n}`)), [admin]],
  ];
}

const mergeOf = ({ path, patch }: Write): Message => ({
  method: "PATCH",
  path,
  body: patch,
  type: MERGE_PATCH,
});

/** The kinds of writes of one object, with the answers that Inlay and others need. */
async function writesOf(rig: Rig, kind: "HarborCluster" | "Deployment", senders: Senders): Promise<Case[]> {
  const isHarbor = kind === "HarborCluster";
  const pathOf = (name?: string) => (isHarbor ? harborPath : deploymentPath)(NAMESPACE, name);
  const nameOf = (i: number) => `${isHarbor ? "h" : "d"}-${i}`;
  const objectOf = await objectsOf(rig, pathOf());
  const uidOf = (i: number): string => objectOf(nameOf(i)).metadata.uid;
  const apiVersion = isHarbor ? "goharbor.io/v1beta1" : "apps/v1";
  const patchOf = (n: number) =>
    isHarbor ? harborPatch(`v-${n}`) : { spec: { template: { metadata: { annotations: { [STAMP]: `v-${n}` } } } } };
  const merge: MessageOf = (i, n) => mergeOf({ path: pathOf(nameOf(i)), patch: patchOf(n) });
  const jsonPatch: MessageOf = (i, n) => ({
    method: "PATCH",
    path: `${pathOf(nameOf(i))}?${MANAGER}`,
    body: [{ op: "test", path: "/metadata/uid", value: uidOf(i) }, ...leavesOf(patchOf(n))],
    type: "application/json-patch+json",
  });
  const apply: MessageOf = (i, n) => ({
    method: "PATCH",
    path: `${pathOf(nameOf(i))}?${MANAGER}&force=true&fieldValidation=Strict`,
    body: { apiVersion, kind, metadata: { name: nameOf(i), uid: uidOf(i) }, ...patchOf(n) },
    type: "application/apply-patch+yaml",
  });
  const withMetadata =
    (of: MessageOf): MessageOf =>
    (i, n) => ({ ...of(i, n), accept: METADATA_ONLY });
  const { account, http1, admin } = senders;
  return [
    [`merge patch of a ${kind}, whole answer`, merge, [admin]],
    [`merge patch of a ${kind}`, withMetadata(merge), [admin, account, http1]],
    [`JSON Patch of a ${kind}`, withMetadata(jsonPatch), [account, http1]],
    [`apply of a ${kind}, whole answer`, apply, [account]],
    [`apply of a ${kind}`, withMetadata(apply), [account, http1]],
  ];
}

/** JSON Patch operations for the leaves of a patch. */
function leavesOf(patch: object, path = ""): object[] {
  return Object.entries(patch).flatMap(([key, value]) => {
    const pointer = `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    return typeof value === "object" ? leavesOf(value, pointer) : [{ op: "add", path: pointer, value }];
  });
}

async function statusWritesOf(rig: Rig, { admin }: Senders): Promise<Case[]> {
  const bindingOf = await objectsOf(rig, bindingPath(NAMESPACE));
  const path = (i: number) => `${bindingPath(NAMESPACE, `b-${i}`)}/status`;
  const status = (n: number) => ({ status: { synced: `${n}/${n}` } });
  const replace: MessageOf = (i, n) => {
    const binding = bindingOf(`b-${i}`);
    const answered = ({ metadata }: AnyObject) => Object.assign(binding, { metadata });
    return { method: "PUT", path: path(i), body: { ...binding, ...status(n) }, answered };
  };
  return [
    ["PUT of the status of a binding", replace, [admin]],
    ["merge patch of the status of a binding", (i, n) => mergeOf({ path: path(i), patch: status(n) }), [admin]],
  ];
}

let sent = 0;

async function measureCase(rig: Rig, what: string, sender: Sender, messageOf: MessageOf): Promise<void> {
  const count = rig.of(REQUESTS);
  const once = (i: number) => send(rig, sender, messageOf(i % OBJECTS, sent++));
  await atOnce(rig.of(OBJECTS), WIDTH, once);
  await sleep(300);
  const before = await processorSeconds(rig);
  await atOnce(count, WIDTH, once);
  const used = await usedSince(rig, before, count);
  const times: number[] = [];
  for (let i = 0; i < SINGLE; i++) {
    const from = performance.now();
    await once(i);
    times.push(performance.now() - from);
  }
  const cells = [...["kube-apiserver", "etcd", "the benchmark"].map((name) => used[name] ?? 0), median(times)];
  rig.table.cells(`${what}; ${sender.name}`, ...cells.map((cell) => cell.toFixed(2)));
}

async function send({ cluster }: Rig, { agent, headers }: Sender, message: Message): Promise<void> {
  const { method = "GET", path, body, type = "application/json", accept = "application/json", answered } = message;
  const answer = await request(cluster.url + path, {
    method,
    dispatcher: agent,
    headers: { ...headers, accept, ...(body && { "content-type": type }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.body.text();
  if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${answer.statusCode}`);
  answered?.(JSON.parse(text));
}

/** What a change of a Secret costs the API server with watches of all Secrets, by the form of their events. */
async function measureWatches(rig: Rig, { agent, headers }: Sender): Promise<void> {
  const { cluster, table } = rig;
  table.cells(`change of a Secret with ${WATCHES} watches`, "API server", "bytes");
  table.cells("none", ...(await costOfChange(rig, () => 0)));
  for (const [form, accept] of FORMS) {
    const stop = new AbortController();
    let bytes = 0;
    for (let i = 0; i < WATCHES; i++) {
      const answer = await request(`${cluster.url}${secretPath(NAMESPACE)}?watch=true&resourceVersion=0`, {
        dispatcher: agent,
        headers: { ...headers, accept },
        signal: stop.signal,
      });
      if (answer.statusCode !== 200) throw new Error(`a watch as ${form}: ${answer.statusCode}`);
      // Stopping it is an error of the stream.
      answer.body
        .on("error", () => {})
        .on("data", (chunk: Buffer) => {
          bytes += chunk.length;
        });
    }
    table.cells(form, ...(await costOfChange(rig, () => bytes)));
    stop.abort();
  }
}

/** Milliseconds of the API server for a change, and the bytes of its event on one watch. */
async function costOfChange(rig: Rig, received: () => number): Promise<[string, string]> {
  const count = rig.of(REQUESTS) / 2;
  // Until the watches have sent what exists.
  await sleep(1_000);
  const [bytes, before] = [received(), await processorSeconds(rig)];
  await atOnce(count, WIDTH, (i) => {
    const { path, patch } = secretChange(NAMESPACE, i % OBJECTS, `watched-${sent++}`);
    return rig.client.merge(path, patch);
  });
  await sleep(500);
  const { "kube-apiserver": used = 0 } = await usedSince(rig, before, count);
  return [used.toFixed(2), ((received() - bytes) / count / WATCHES).toFixed(0)];
}
