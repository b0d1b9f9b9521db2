/**
 * A store that only tests have. An HTTP server has the value, and Inlay polls it because it can't be watched. A source may name an object that
 * describes the server.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Source } from "../../src/api/binding.ts";
import { idOf, type KubeObject, type Resource } from "../../src/apimachinery/objects.ts";
import { MissingValue, Problem } from "../../src/apimachinery/problem.ts";
import { ACCOUNT_TOKENS, SECRETS, SERVICE_ACCOUNTS } from "../../src/apimachinery/resources.ts";
import { SecretValue } from "../../src/apimachinery/secret-value.ts";
import type { Poll } from "../../src/sources/poll.ts";
import { polledSource } from "../../src/sources/polled-source.ts";
import type { SourceKind } from "../../src/sources/source.ts";
import { secretText } from "../controller/leak-detector.ts";

/** How long an answer is valid, plus or minus a tenth of it. */
export const INTERVAL_MS = 1_000;
export const SHORTEST_INTERVAL_MS = 900;

interface Entry {
  name: string;
  counter?: { name: string; connection?: { name: string; namespace?: string; granted?: boolean } };
}

interface Answer {
  revision: number;
  value: string;
}

/** The objects through which counters may be read. Only files have them. */
const counterServers: Resource = {
  group: "test.inlay.dev",
  version: "v1",
  kind: "CounterServer",
  plural: "counterservers",
  namespaced: true,
  hasStatus: true,
};

interface CounterServerObject extends KubeObject {
  spec: { serviceAccountName: string; credentials: string };
}

/** The content of a file src/sources/counter.ts. */
export function counterKind(server: string): SourceKind {
  return {
    fileParts: {
      counters: {
        example: "{value: VALUE}",
        wrongKey: (key) => (/^[a-z-]+$/.test(key) ? undefined : "must be the name of a counter, such as visits"),
      },
    },
    connection: {
      resource: counterServers,
      field: "counter",
      fromFile: (object) => ({ phase: "ready", labels: object?.metadata.labels ?? {} }),
      namedBy: (object) => {
        const { metadata, spec } = object as CounterServerObject;
        const ref = { resource: SECRETS, namespace: metadata.namespace ?? "", name: spec.credentials };
        return [{ ref, place: "spec.credentials", use: "credentials" }];
      },
      access: (object) => {
        const { metadata, spec } = object as CounterServerObject;
        const { namespace = "" } = metadata;
        const ref = { resource: SECRETS, namespace, name: spec.credentials };
        return {
          account: { resource: SERVICE_ACCOUNTS, namespace, name: spec.serviceAccountName },
          permissions: [{ ref, verbs: ["get"] }],
        };
      },
    },
    parse(entry: Source, { namespace: own, policy }) {
      const { name, counter } = entry as Entry;
      if (counter === undefined) return undefined;
      const description = `counter ${counter.name}`;
      const { name: through, namespace = own, granted = false } = counter.connection ?? {};
      const connection = through === undefined ? undefined : { resource: counterServers, namespace, name: through };
      const needsGrant = granted || namespace !== own;
      const poll: Poll<Answer> = {
        id: `counter/${counter.name}`,
        group: server,
        refreshMs: INTERVAL_MS,
        unavailable: "Unavailable",
        ask: async () => {
          const content = await ask(server, counter.name);
          return { version: `${counter.name}/${content.revision}`, content, size: content.value.length };
        },
        fromFile(files) {
          const value = files.fieldsOf("counters", counter.name)?.["value"];
          if (value !== undefined) return { version: "0", content: { revision: 0, value: String(value) }, size: 0 };
          files.missing("counters", counter.name);
          throw new MissingValue("SourceNotFound", `there is no ${description}`, policy);
        },
      };
      return {
        name,
        policy,
        addressedBy: "key",
        secretIn: own,
        store: {
          product: "Counters",
          reads: description,
          ...(connection && { connection: { ref: connection, needsGrant } }),
          access: (account, state) =>
            state?.phase === "ready" ? [{ ref: { ...account, resource: ACCOUNT_TOKENS }, verbs: ["create"] }] : [],
        },
        describe: () => ({ kind: connection?.resource.kind ?? "Counter", name: through ?? counter.name }),
        isObject: (other) => connection !== undefined && idOf(other) === idOf(connection),
        resolve: async (context) => {
          const state = connection && context.connections.get(connection);
          if (state?.phase === "failed") throw state.problem;
          const place = ["test.inlay.dev", "Counter", "", counter.name] as const;
          const granting = connection !== undefined && needsGrant ? { grantedObject: connection } : {};
          return polledSource({ place, description, policy, ...granting }, poll, context, ({ revision, value }) => ({
            kind: "data",
            isSecret: true,
            description,
            version: `${counter.name}/${revision}`,
            policy,
            data: new Map([["value", new SecretValue<Uint8Array>(Buffer.from(value))]]),
            annotations: new SecretValue({}),
            labels: new SecretValue({}),
          }));
        },
      };
    },
  };
}

/** What the CRD must have for an entry, and its rule that exactly one kind is set. */
export const COUNTER_SCHEMA = {
  type: "object",
  required: ["name"],
  properties: {
    name: { type: "string" },
    connection: {
      type: "object",
      required: ["name"],
      properties: { name: { type: "string" }, namespace: { type: "string" }, granted: { type: "boolean" } },
    },
  },
};

/** Fails if the rule does not name each kind, since an unchanged rule would fail other tests. */
export function withCounter(rule: string): string {
  assert.match(rule, /\]\s*\.exists_one/);
  return rule.replace(/\]\s*\.exists_one/, ", has(self.counter)].exists_one");
}

/** The answer of a server contains a value, so a Problem quotes nothing of it. */
async function ask(server: string, name: string): Promise<Answer> {
  const why = await fetch(`${server}/${name}`).then(
    async (response) => (response.ok ? ((await response.json()) as Answer) : `answered ${response.status}`),
    () => "is not reached",
  );
  if (typeof why !== "string") return why;
  throw new Problem("Unavailable", `the server of counter ${name} ${why}; check the server. Inlay retries`);
}

/** The server of the counters. It has one value for all names, and counts the requests. */
export class CounterServer {
  readonly url: string;
  /** The status of its answers. */
  status = 200;
  /** The times of the requests for each counter. */
  readonly polls = new Map<string, number[]>();
  readonly #stop: () => void;
  #answer: Answer = { revision: 0, value: "" };

  static async start(): Promise<CounterServer> {
    const server = createServer((request, response) => {
      const name = request.url?.slice(1) ?? "";
      counters.polls.set(name, [...(counters.polls.get(name) ?? []), performance.now()]);
      response.writeHead(counters.status).end(JSON.stringify(counters.#answer));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const counters = new CounterServer(`http://127.0.0.1:${port}`, () => {
      server.close();
      server.closeAllConnections();
    });
    return counters;
  }

  private constructor(url: string, stop: () => void) {
    this.url = url;
    this.#stop = stop;
    this.next();
  }

  /** Changes the value, and returns the new one. */
  next(): string {
    this.#answer = { revision: this.#answer.revision + 1, value: secretText("counter") };
    return this.#answer.value;
  }

  /** The shortest time between two requests for the same counter. */
  get shortestGapMs(): number {
    const gaps = [...this.polls.values()].flatMap((times) => times.slice(1).map((at, i) => at - (times[i] as number)));
    return Math.min(...gaps);
  }

  stop(): void {
    this.#stop();
  }
}
