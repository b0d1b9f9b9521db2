/** Asks a server once whether it is ready, that is, whether a URL answers with 200. */
import { get as getHttp } from "node:http";
import { get as getHttps } from "node:https";

const DEADLINE = 2_000;

interface Trust {
  ca: string;
  token: string;
}

/** With https, the server's certificate must be signed by `ca`. */
export function answersOk(url: string, trust?: Trust): Promise<boolean> {
  const get = trust === undefined ? getHttp : getHttps;
  // Keeps no connection: it would outlive a killed server, and delay the end of this process.
  const options = {
    agent: false,
    timeout: DEADLINE,
    ...(trust && { ca: trust.ca, headers: { authorization: `Bearer ${trust.token}` } }),
  };
  return new Promise((resolve) => {
    const asked = get(url, options, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asked.once("timeout", () => asked.destroy());
    asked.once("error", () => resolve(false));
    asked.once("close", () => resolve(false));
  });
}
