/** Which paths in Vault a binding may read through a connection, and that no spelling reaches others. */
import assert from "node:assert/strict";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { assertAllowedPath } from "../../../src/vault/allowed-paths.ts";

const TEAMS = ["kv/{namespace}/*"];
type Place = Parameters<typeof assertAllowedPath>[1];

const v2 = (mount: string, path: string): Place => ({ mount, path, kv: 2 });
const v1 = (mount: string, path: string): Place => ({ mount, path, kv: 1 });
const metadata = (mount: string, path: string): Place => ({ mount, path });

function messageOf(paths: readonly string[], place: Place, namespace = "a"): string | undefined {
  try {
    assertAllowedPath(paths, place, namespace, "vault/main");
    return undefined;
  } catch (error) {
    assert.ok(error instanceof Problem, String(error));
    assert.equal(error.reason, "ForbiddenPath");
    return error.message;
  }
}
const allows = (paths: readonly string[], place: Place, namespace?: string) =>
  assert.equal(messageOf(paths, place, namespace), undefined);
const refuses = (paths: readonly string[], place: Place, namespace?: string) =>
  assert.ok(messageOf(paths, place, namespace), `${JSON.stringify(paths)} allows ${place.mount}/${place.path}`);

describe("the paths of a VaultConnection", () => {
  it("allow a place that one of them matches completely, * across slashes too", () => {
    for (const make of [v2, v1, metadata]) {
      allows(TEAMS, make("kv", "a/s3"));
      allows(TEAMS, make("kv", "a/deep/er/s3"));
      allows(["other/x", "kv/shared/tls"], make("kv", "shared/tls"));
      allows(["*"], make("kv", "any/thing"));
      allows(["kv/db-?"], make("kv", "db-1"));
      allows(["{namespace}/{namespace}-*"], make("a", "a-s3"));
    }
    allows(["team/kv/*"], v2("team/kv", "s3"));
  });

  it("do not match by a beginning, an end or a part", () => {
    for (const place of [
      "kv/shared/tls/old",
      "kv/shared/tl",
      "my/kv/shared/tls",
      "kv/shared/tls-old",
      "kv/Shared/tls",
    ]) {
      const [mount = "", ...path] = place.split("/");
      refuses(["kv/shared/tls"], v2(mount, path.join("/")));
    }
    refuses(TEAMS, v2("kv", "a"));
    refuses(TEAMS, v2("kv2", "a/s3"));
    refuses(TEAMS, v2("x/kv", "a/s3"));
    refuses(["kv/db-?"], v2("kv", "db-12"));
    refuses(["kv/a.c"], v2("kv", "abc"));
    refuses(["KV/*"], v2("kv", "x"));
  });

  it("do not allow a namespace the paths of others, whatever their names have in common", () => {
    for (const other of ["ab", "ba", "aa", "a-b", "A", "b"]) {
      refuses(TEAMS, v2("kv", `${other}/s3`), "a");
      refuses(TEAMS, v2("kv", "a/s3"), other);
      refuses(["kv/{namespace}"], v2("kv", other), "a");
      refuses(["kv/x-{namespace}/*"], v2("kv", `x-${other}/s3`), "a");
    }
    allows(["kv/x-{namespace}/*"], v2("kv", "x-a/s3"), "a");
  });

  it("insert the name of a namespace without treating it as a pattern", () => {
    for (const namespace of ["*", "?", "a*", "a/b", "", "$&", "{namespace}"])
      refuses(TEAMS, v2("kv", "a/s3"), namespace);
    refuses(["kv/{namespace}"], v2("kv", "a/b"), "a/b");
  });

  it("refuse a path that a server could read as another one", () => {
    for (const path of ["a/../b/s3", "a/./s3", "a//s3", "a/+/s3", "a/*", "a/s?", "a/"]) refuses(TEAMS, v2("kv", path));
    refuses(["*"], v2("..", "s3"));
    refuses(["*"], v2("kv/..", "s3"));
    // No part of it is only a dot.
    allows(TEAMS, v2("kv", "a/..s3"));
    allows(TEAMS, v2("kv", "a/%2e%2e/b"));
  });

  it("refuse Vault's own mounts, and the request for the token of the login", () => {
    for (const mount of ["sys", "auth/token", "identity", "cubbyhole", "audit"])
      refuses(["*"], v1(mount, "lookup-self"));
    refuses(["*"], v1("team", "auth/token/lookup-self"));
    refuses(["*"], v1("team/auth/token", "lookup-self"));
    allows(["*"], v2("kv", "auth/token/lookup-self"));
    allows(["*"], v2("kv", "sys/auth"));
  });

  it("apply to every way in which Vault may read the request, also for a namespace with the name data", () => {
    // kv/data/b/s3 is the secret b/s3 of an engine of version 2 at kv.
    refuses(TEAMS, v1("kv", "data/b/s3"), "data");
    refuses(TEAMS, v1("kv/data", "b/s3"), "data");
    refuses(TEAMS, v1("kv", "metadata/b/s3"), "metadata");
    refuses(["kv/d*"], v1("kv", "data/b/s3"));
    // kv/data/metadata/s3 is the secret metadata/s3, of the namespace metadata.
    refuses(TEAMS, metadata("kv/data", "s3"), "data");
    refuses(TEAMS, v2("kv/metadata", "s3"), "metadata");
    for (const make of [v2, metadata]) {
      allows(TEAMS, make("kv", "data/s3"), "data");
      allows(TEAMS, make("kv", "metadata/data/s3"), "metadata");
      allows(TEAMS, make("kv", "a/data/s3"), "a");
    }
    allows(TEAMS, v1("kv", "a/data/s3"), "a");
    allows(["kv/*"], v1("kv", "data/s3"));
  });

  it("are listed in the error, with what to change, also for a connection without a login", () => {
    assert.match(
      messageOf([...TEAMS, "kv/shared/*", "kv/x", "kv/y"], v2("kv", "b/s3")) ?? "",
      /^VaultConnection vault\/main allows kv\/a\/\*, kv\/shared\/\*, kv\/x and 1 more, .*kv\/b\/s3; .*spec\.paths/,
    );
    assert.match(
      messageOf([], v2("kv", "b/s3")) ?? "",
      /^VaultConnection vault\/main has no paths.* add auth and paths/,
    );
  });

  it("never allow one namespace to read a path of another one, however the source splits it", () => {
    const words = ["a", "data", "metadata", "kv"];
    const texts = words.flatMap((each) => [each, ...words.map((other) => `${each}/${other}`)]);
    let allowed = 0;
    for (const make of [v2, v1, metadata])
      for (const [mount, path] of texts.flatMap((each) => texts.map((other) => [each, other] as const)))
        for (const namespace of words) {
          const place = make(mount, path);
          if (messageOf(TEAMS, place, namespace) !== undefined) continue;
          allowed++;
          const inserted = { 1: "", 2: "data/", 0: "metadata/" }[place.kv ?? 0];
          const request = `${mount}/${inserted}${path}`;
          // As an engine of version 2 at kv reads it.
          const secret = /^kv\/(?:data|metadata)\/(.+)$/.exec(request)?.[1];
          assert.ok(secret === undefined || secret.startsWith(`${namespace}/`), `${request} for ${namespace}`);
        }
    assert.ok(allowed > 0);
  });
});
