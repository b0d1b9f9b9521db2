/**
 * Where to connect comes in, a connection goes out that ends when its peer says nothing any more. Everything on it then
 * fails at once and is begun anew elsewhere: a watch that waits for changes can't tell by itself that none will come.
 */
import { createSecureContext, type TLSSocket } from "node:tls";
import { buildConnector } from "undici";
import type { Credentials } from "./credentials.ts";

/** How often a peer is asked for a sign of life, by a PING of HTTP/2, which it has to answer. */
export const PING_EVERY_MS = 3_000;
/** Looked at so often, so many times without a byte: a process that was held up itself has looked only once meanwhile. */
const LOOK_EVERY_MS = 2_000;
const SILENT_LOOKS = 5;
const CONNECT_WITHIN_MS = 5_000;

export function connector({ servername, ...material }: Credentials["tls"]): buildConnector.connector {
  // Made once: while a server is away, every try would read the certificates again, in memory that is slow to come back.
  const secureContext = createSecureContext(material);
  const named = servername === undefined ? {} : { servername };
  const connect = buildConnector({
    secureContext,
    ...named,
    // Said, so that NODE_TLS_REJECT_UNAUTHORIZED in the environment changes nothing.
    rejectUnauthorized: true,
    allowH2: true,
    timeout: CONNECT_WITHIN_MS,
  });
  return (options, callback) =>
    connect(options, (...result) => {
      const socket = result[1] as TLSSocket | null | undefined;
      // Over HTTP/1.1 nothing is sent by itself, and silence means nothing.
      if (socket?.alpnProtocol === "h2") endWhenSilent(socket);
      callback(...result);
    });
}

/** What is needed of a socket. */
interface Connection {
  readonly bytesRead: number;
  destroy(error: Error): unknown;
  once(event: "close", listener: () => void): unknown;
}

/** Destroys a socket on which nothing arrives for ten seconds. */
export function endWhenSilent(socket: Connection): void {
  let read = socket.bytesRead;
  let silent = 0;
  const looking = setInterval(() => {
    silent = socket.bytesRead === read ? silent + 1 : 0;
    read = socket.bytesRead;
    if (silent === SILENT_LOOKS) {
      socket.destroy(Object.assign(new Error("the server does not answer"), { code: "ETIMEDOUT" }));
    }
  }, LOOK_EVERY_MS).unref();
  socket.once("close", () => clearInterval(looking));
}
