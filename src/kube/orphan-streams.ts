/**
 * Ends HTTP/2 streams that nobody knows; imported for that alone. A request that is aborted in the tick in which it is sent
 * goes out without its reset. When the answer comes, Node makes a new stream for it: that would stay open on the server for
 * as long as a watch lives, and as nobody hears its errors, end this process with its connection.
 */
import { subscribe } from "node:diagnostics_channel";
import { type ClientHttp2Stream, constants } from "node:http2";

subscribe("http2.client.stream.created", (message) => {
  const { stream } = message as { stream: ClientHttp2Stream };
  // Every stream that was asked for knows what was asked.
  if (stream.sentHeaders !== undefined) return;
  stream.on("error", () => {});
  stream.close(constants.NGHTTP2_CANCEL);
});
