/** A kind of source that only tests have. An HTTP server has the value, and Inlay polls it because it can't be watched. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Source } from "../../src/api/binding.ts";
import { Problem } from "../../src/apimachinery/problem.ts";
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
  counter?: { name: string };
}

interface Answer {
  revision: number;
  value: string;
}

/** The content of a file src/sources/counter.ts. */
export function counterKind(server: string): SourceKind {
  return {
    parse(entry: Source, { namespace, policy }) {
      const { name, counter } = entry as Entry;
      if (counter === undefined) return undefined;
      const description = `counter ${counter.name}`;
      const poll: Poll<Answer> = {
        id: `counter/${counter.name}`,
        group: server,
        refreshMs: INTERVAL_MS,
        ask: async () => {
          const content = await ask(server, counter.name);
          return { version: `${counter.name}/${content.revision}`, content, size: content.value.length };
        },
      };
      return {
        name,
        policy,
        addressedBy: "key",
        secretIn: namespace,
        describe: () => ({ kind: "Counter", name: counter.name }),
        isObject: () => false,
        resolve: async (context) => {
          const place = ["test.inlay.dev", "Counter", "", counter.name] as const;
          return polledSource({ place, description, policy }, poll, context, ({ revision, value }) => ({
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
