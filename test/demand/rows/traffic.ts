/** The rows of gateways and proxies. */
import { randomInt } from "node:crypto";
import { secretText } from "../../controller/leak-detector.ts";
import type { Row } from "../row.ts";

const jwksRow: Row = {
  number: 16,
  title: "a rule of a RequestAuthentication gets a key as the JSON text of a key set, and the other rules don't change",
  values: () => ({ jwt: { kid: secretText("kid"), key: `${secretText("hmac")}~~>` } }),
  targets: [
    {
      apiVersion: "security.istio.io/v1",
      kind: "RequestAuthentication",
      plural: "requestauthentications",
      name: "shop",
      object: {
        spec: {
          selector: { matchLabels: { app: "shop" } },
          jwtRules: [
            { issuer: "https://other.example.com", jwksUri: "https://other.example.com/jwks" },
            { issuer: "https://login.example.com", forwardOriginalToken: true },
          ],
        },
      },
      entry: {
        fields: [
          {
            path: 'spec.jwtRules[issuer="https://login.example.com"].jwks',
            template: '{"keys":[{"kty":"oct","alg":"HS256","kid":{{json jwt.kid}},"k":"{{base64url jwt.key}}"}]}',
          },
        ],
      },
      arrives: ({ jwt }) => {
        const k = Buffer.from(jwt.key).toString("base64url");
        const jwks = JSON.stringify({ keys: [{ kty: "oct", alg: "HS256", kid: jwt.kid, k }] });
        return [[["spec", "jwtRules", 1, "jwks"], jwks]];
      },
      operation: "Update",
    },
  ],
};

const middlewareRow: Row = {
  number: 20,
  title: "a Middleware of Traefik adds a token to each request",
  values: () => ({ upstream: { token: secretText("token") } }),
  targets: [
    {
      apiVersion: "traefik.io/v1alpha1",
      kind: "Middleware",
      plural: "middlewares",
      name: "upstream",
      object: { spec: { headers: { customRequestHeaders: { "X-Shop": "1" } } } },
      entry: {
        fields: [{ path: "spec.headers.customRequestHeaders.Authorization", template: "Bearer {{upstream.token}}" }],
      },
      arrives: ({ upstream }) => [
        [["spec", "headers", "customRequestHeaders", "Authorization"], `Bearer ${upstream.token}`],
      ],
      operation: "Apply",
    },
  ],
};

const kongRow: Row = {
  number: 21,
  title: "a KongPlugin's configuration, which is at the root and has no schema, gets text and numbers",
  values: () => ({ redis: { password: secretText("password"), port: `${randomInt(6000, 7000)}` } }),
  targets: [
    {
      apiVersion: "configuration.konghq.com/v1",
      kind: "KongPlugin",
      plural: "kongplugins",
      name: "limit",
      object: {
        plugin: "rate-limiting",
        config: { minute: 60, policy: "redis", redis: { host: "redis" } },
        protocols: ["http", "https"],
      },
      entry: {
        fields: [
          { path: "config.redis.password", from: { source: "redis", key: "password" } },
          { path: "config.redis.port", from: { source: "redis", key: "port" }, as: "integer" },
        ],
      },
      arrives: ({ redis }) => [
        [["config", "redis", "password"], redis.password],
        [["config", "redis", "port"], Number(redis.port)],
      ],
      operation: "Apply",
    },
  ],
};

export const traffic: Row[] = [jwksRow, middlewareRow, kongRow];
