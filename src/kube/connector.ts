/**
 * Connects to the API server, and closes connections whose server is silent. All requests on such a connection then
 * fail at once and are sent on another: a watch can't detect by itself that its server is gone.
 */
import { createSecureContext, type TLSSocket } from "node:tls";
import { buildConnector } from "undici";
import type { Credentials } from "./credentials.ts";

/** How often HTTP/2 sends a PING, which the server must answer. */
export const PING_EVERY_MS = 3_000;
/**
 * How often silence is checked, and after how many silent checks a connection ends. After a pause of this process
 * itself, only one check has passed.
 */
const LOOK_EVERY_MS = 2_000;
const SILENT_LOOKS = 5;
const CONNECT_WITHIN_MS = 5_000;

export function connector({ servername, ...material }: Credentials["tls"]): buildConnector.connector {
  // Created once: otherwise every attempt during an outage would read the certificates again, into memory that is freed
  // slowly.
  const secureContext = createSecureContext(material);
  const named = servername === undefined ? {} : { servername };
  const connect = buildConnector({
    secureContext,
    ...named,
    // Set, so that NODE_TLS_REJECT_UNAUTHORIZED in the environment changes nothing.
    rejectUnauthorized: true,
    allowH2: true,
    timeout: CONNECT_WITHIN_MS,
  });
  return (options, callback) =>
    connect(options, (...result) => {
      const socket = result[1] as TLSSocket | null | undefined;
      // HTTP/1.1 has no PING, so silence means nothing there.
      if (socket?.alpnProtocol === "h2") endWhenSilent(socket);
      callback(...result);
    });
}

/** The parts of a socket that this uses. */
interface Connection {
  readonly bytesRead: number;
  destroy(error: Error): unknown;
  once(event: "close", listener: () => void): unknown;
}

/** Destroys a socket that receives nothing for ten seconds. */
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
