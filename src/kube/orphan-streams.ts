/**
 * Closes HTTP/2 streams without a request; imported only for this effect. A request that is aborted in the tick of its
 * sending goes out without a reset. When the answer arrives, Node creates a new stream for it. That stream would stay
 * open on the server, and its unhandled errors could end this process.
 */
import { subscribe } from "node:diagnostics_channel";
import { type ClientHttp2Stream, constants } from "node:http2";

subscribe("http2.client.stream.created", (message) => {
  const { stream } = message as { stream: ClientHttp2Stream };
  // A stream with a request has sent headers.
  if (stream.sentHeaders !== undefined) return;
  stream.on("error", () => {});
  stream.close(constants.NGHTTP2_CANCEL);
});
